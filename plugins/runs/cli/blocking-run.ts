import { path } from '../../../core/cli/contract.ts'
import type { Cli } from '../../../core/cli/contract.ts'
import type { Question, Run } from './run-record.ts'

/** The run that the queued runs of its conversation wait for. */
export interface BlockingRun {
	run_id: string
	/** The question that it waits for, if any. */
	question: Question | null
}

/** Limit of runs read per status: each is of another conversation. */
const LIMIT = 500

/** The active or paused run of a conversation; undefined if there is none. */
export async function blockingRun({ api }: Cli, agent: string, conversation: string): Promise<BlockingRun | undefined> {
	const questions = await api.request<Question[]>('GET', path`/v1/agents/${agent}/questions`)
	for (const status of ['paused', 'started']) {
		const runs = await api.request<Run[]>('GET', path`/v1/agents/${agent}/runs?status=${status}&limit=${LIMIT}`)
		const found = runs.find((run) => run.conversation === conversation)
		if (!found) continue
		// A question in the middle of a call is not the run's own: the run continues.
		const live = questions.find((question) => question.run_id === found.run_id)
		return { run_id: found.run_id, question: found.open_question ?? live ?? null }
	}
	return undefined
}

/** Describes what a queued run waits for, and the command that ends the wait. */
export function waitingNote({ ask, out }: Cli, agent: string, { run_id, question }: BlockingRun): string {
	const end = `svc runs cancel ${run_id}`
	if (!question) return `waits for an earlier run of this conversation: svc runs follow ${run_id}, or ${end}`
	if (ask.canAsk && !out.json) return `an earlier run of this conversation waits for an answer; ${end} ends it`
	const options = question.options?.length ? ` (${question.options.join(' / ')})` : ''
	const asked = out.style.plain(question.question + options)
	return `waits for the answer to: ${asked} - svc questions answer ${agent} ${question.question_id} …, or ${end}`
}
