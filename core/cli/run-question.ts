import { CliError, path } from './contract.ts'
import type { Cli } from './contract.ts'

export interface Question {
	question_id: string
	question: string
	options?: string[]
}

export interface Asking {
	readonly question_id: string
	/** Somebody else has answered. */
	withdraw(answer: string): void
	/** Settles once the question is answered, here or elsewhere. Rejects with a CliError where the user breaks off. */
	readonly done: Promise<void>
}

const OTHER = 'Something else …'

/** Asks the user what an agent asks, and sends the answer; where nobody can be asked, says how to answer. */
export function askUser(cli: Cli, agent: string, asked: Question, signal: AbortSignal): Asking {
	const { question_id, question, options = [] } = asked
	const { api, ask, out } = cli
	const withdrawn = new AbortController()
	let answered = false

	async function answer(): Promise<void> {
		if (!ask.canAsk || out.json) {
			const choices = options.length > 0 ? ` (${options.join(' / ')})` : ''
			out.note(`${agent} asks: ${out.style.plain(question + choices, { lines: true })}`)
			out.note(`Answer with: svc questions answer ${agent} ${question_id} …`)
			return
		}
		const until = { signal: AbortSignal.any([signal, withdrawn.signal]) }
		const chosen = options.length > 0 ? await ask.choice(question, [...options, OTHER], until) : OTHER
		const text = chosen === OTHER ? await ask.text(options.length > 0 ? 'What?' : question, until) : chosen
		answered = true
		await api.request('POST', path`/v1/agents/${agent}/ask-responses/${question_id}`, { answer: text })
	}

	return {
		question_id,
		withdraw(text) {
			if (answered) return
			withdrawn.abort()
			out.note(out.style.dim(`  (answered elsewhere: ${out.style.plain(text)})`))
		},
		done: answer().catch((error: unknown) => {
			if (withdrawn.signal.aborted) return
			// Somebody else was faster; the run goes on all the same.
			if (error instanceof CliError && error.exit === 'conflict') return out.note(error.message)
			throw error
		}),
	}
}
