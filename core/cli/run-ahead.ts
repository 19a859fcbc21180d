import { path } from './contract.ts'
import type { Cli } from './contract.ts'
import type { Run } from './follow-run.ts'
import type { Question } from './run-question.ts'

/** The run for whose end others of its conversation wait. */
export interface Ahead {
	run_id: string
	/** What it waits for, where somebody has to answer that. */
	question: Question | null
}

/** Runs of one status that are looked through: each is of another conversation. */
const LIMIT = 500

/** The run of a conversation that is at work or paused; undefined where there is none, or none any more. */
export async function runAhead({ api }: Cli, agent: string, conversation: string): Promise<Ahead | undefined> {
	const questions = await api.request<Question[]>('GET', path`/v1/agents/${agent}/questions`)
	for (const status of ['paused', 'started']) {
		const runs = await api.request<Run[]>('GET', path`/v1/agents/${agent}/runs?status=${status}&limit=${LIMIT}`)
		const found = runs.find((run) => run.conversation === conversation)
		if (!found) continue
		// One that is asked in the middle of a call is none of the run's own: that goes on.
		const live = questions.find((question) => question.run_id === found.run_id)
		return { run_id: found.run_id, question: found.open_question ?? live ?? null }
	}
	return undefined
}

/** What a run waits for that is not at work yet, and how to end that. */
export function waitingNote({ ask, out }: Cli, agent: string, { run_id, question }: Ahead): string {
	const end = `svc runs cancel ${run_id}`
	if (!question) return `waits for an earlier run of this conversation: svc runs follow ${run_id}, or ${end}`
	if (ask.canAsk && !out.json) return `an earlier run of this conversation waits for an answer; ${end} ends it`
	const options = question.options?.length ? ` (${question.options.join(' / ')})` : ''
	const asked = out.style.plain(question.question + options)
	return `waits for the answer to: ${asked} - svc questions answer ${agent} ${question.question_id} …, or ${end}`
}
