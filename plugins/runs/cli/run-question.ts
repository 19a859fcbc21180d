import { CliError, path } from '../../../core/cli/contract.ts'
import type { Cli } from '../../../core/cli/contract.ts'
import type { Question } from './run-record.ts'

export type Asking = ReturnType<typeof askUser>

const OTHER = 'Something else …'

/** `none`: not a command. `over`: ask no more questions, and do not wait for the current answer. */
export type CommandOutcome = 'none' | 'again' | 'over'

export interface QuestionHooks {
	/** Called if there is no terminal: the question must be answered elsewhere. */
	stuck?(): void
	/** Handles a command typed at a question. */
	command?(text: string): Promise<CommandOutcome>
}

/**
 * Asks the user the question of an agent or a sub-agent, and sends the answer. Without a terminal, shows how to answer.
 * `run_id`: a question of any other run is that of a sub-agent.
 */
export function askUser(
	cli: Cli,
	{ agent, run_id, hooks }: { agent: string; run_id: string; hooks: QuestionHooks },
	asked: Question,
	signal: AbortSignal,
) {
	const { question_id, question, options = [] } = asked
	const { api, ask, out } = cli
	const isBelow = asked.run_id !== undefined && asked.run_id !== run_id
	const who = isBelow ? `a sub-agent of ${agent}` : agent
	const withdrawn = new AbortController()
	let answered = false

	async function answer(): Promise<void> {
		if (!ask.canAsk || out.json) {
			const choices = options.length > 0 ? ` (${options.join(' / ')})` : ''
			out.note(`${who} asks: ${out.style.plain(question + choices, { lines: true })}`)
			out.note(`Answer with: svc questions answer ${agent} ${question_id} …`)
			hooks.stuck?.()
			return
		}
		const until = AbortSignal.any([signal, withdrawn.signal])
		const shown = isBelow ? `${who} asks: ${question}` : question
		for (;;) {
			const text = await readAnswer(cli, asked, { shown, other: OTHER, signal: until })
			const order = (await hooks.command?.(text)) ?? 'none'
			if (order === 'again') continue
			answered = true
			if (order === 'over') return
			try {
				await api.request('POST', path`/v1/agents/${agent}/ask-responses/${question_id}`, { answer: text })
				return
			} catch (error) {
				// The edited arguments are invalid, so the approval is still open.
				const isOpen =
					error instanceof CliError && (error.code === 'invalid_request' || error.code === 'invalid_arguments')
				if (!isOpen || asked.kind !== 'approval') throw error
				answered = false
				out.note(error.message)
			}
		}
	}

	return {
		question_id,
		/** Answered elsewhere; without a `text`, the question was closed without an answer. */
		withdraw(text?: string): void {
			if (answered || withdrawn.signal.aborted) return
			withdrawn.abort()
			const why = text === undefined ? 'no longer asked' : `answered elsewhere: ${out.style.plain(text)}`
			out.note(out.style.dim(`  (${why})`))
		},
		/** Settles when the question is answered, here or elsewhere. Rejects with a CliError if the user cancels. */
		done: answer().catch((error: unknown) => {
			if (withdrawn.signal.aborted) return
			// The question was answered elsewhere, and the run continues.
			if (error instanceof CliError && error.exit === 'conflict') return out.note(error.message)
			throw error
		}),
	}
}

/**
 * Reads the answer of the user, as one text, for an approval such as `edit {"path": "notes.txt"}`. `shown`: the displayed question.
 * `other`: the label of an additional option, for any other answer.
 */
export async function readAnswer(
	{ ask }: Pick<Cli, 'ask'>,
	{ kind, question, options = [] }: Question,
	{ shown = question, other, ...until }: { shown?: string; other?: string; signal?: AbortSignal } = {},
): Promise<string> {
	if (options.length === 0) return ask.text(shown, until)
	if (kind === 'approval') {
		const chosen = await ask.choice(shown, options, until)
		if (chosen === 'edit') return `edit ${await ask.text('All arguments, as one JSON object:', until)}`
		if (chosen === 'refuse') return `refuse ${await ask.text('Why? The model gets the reason.', until)}`
		return chosen
	}
	const chosen = await ask.choice(shown, other === undefined ? options : [...options, other], until)
	return chosen === other ? ask.text('What?', until) : chosen
}
