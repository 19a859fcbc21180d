import { CliError, path } from './contract.ts'
import type { Cli } from './contract.ts'

export interface Question {
	question_id: string
	question: string
	options?: string[]
	/** The run that asks, where that may be a sub-agent of the run that is followed. */
	run_id?: string
}

export interface Asking {
	readonly question_id: string
	/** Somebody else has answered; without an `answer`, nobody waits for one any more. */
	withdraw(answer?: string): void
	/** Settles once the question is answered, here or elsewhere. Rejects with a CliError where the user breaks off. */
	readonly done: Promise<void>
}

const OTHER = 'Something else …'

/** The run that is followed, as far as it matters here. */
interface Followed {
	agent: string
	run_id: string
	hooks?: QuestionHooks
}

export interface QuestionHooks {
	/** Nobody can be asked here: somebody has to answer elsewhere. */
	stuck?(): void
	/** Takes what is typed at a question and is a command instead; `over`: nobody is to be asked any more. */
	command?(text: string): Promise<'none' | 'again' | 'over'>
}

/** Asks the user what an agent or a sub-agent asks, and sends the answer; where nobody can be asked, says how to answer. */
export function askUser(
	cli: Cli,
	{ agent, run_id, hooks = {} }: Followed,
	asked: Question,
	signal: AbortSignal,
): Asking {
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
		const until = { signal: AbortSignal.any([signal, withdrawn.signal]) }
		const shown = isBelow ? `${who} asks: ${question}` : question
		for (;;) {
			const chosen = options.length > 0 ? await ask.choice(shown, [...options, OTHER], until) : OTHER
			const text = chosen === OTHER ? await ask.text(options.length > 0 ? 'What?' : shown, until) : chosen
			const order = (await hooks.command?.(text)) ?? 'none'
			if (order === 'again') continue
			answered = true
			if (order === 'none')
				await api.request('POST', path`/v1/agents/${agent}/ask-responses/${question_id}`, { answer: text })
			return
		}
	}

	return {
		question_id,
		withdraw(text) {
			if (answered || withdrawn.signal.aborted) return
			withdrawn.abort()
			const why = text === undefined ? 'no longer asked' : `answered elsewhere: ${out.style.plain(text)}`
			out.note(out.style.dim(`  (${why})`))
		},
		done: answer().catch((error: unknown) => {
			if (withdrawn.signal.aborted) return
			// Somebody else was faster; the run goes on all the same.
			if (error instanceof CliError && error.exit === 'conflict') return out.note(error.message)
			throw error
		}),
	}
}
