/** Counts the runs that have not ended. */
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Context } from '../../core/plugin.ts'
import type { MetricSource } from '../metrics/contract.ts'
import type { RunCensus, Runs } from './contract.ts'
import { keys } from './keys.ts'
import type { ConversationQueue } from './keys.ts'
import { readRun } from './records.ts'

/** Milliseconds of counting before it yields to other work. */
const SLICE_MS = 5

/** Reads the conversation queues only: each exists as long as its conversation has an unfinished run. */
export async function censusOf({ store, use }: Pick<Context, 'store' | 'use'>): Promise<RunCensus> {
	const census: RunCensus = { active: 0, waiting: 0, paused: 0, questions: 0 }
	let since = performance.now()
	for await (const { uid } of use('agents').list()) {
		for await (const { value } of store.list<ConversationQueue>(keys.queues(uid))) {
			const [first, ...behind] = value.runs
			const run = first === undefined ? undefined : await readRun(store, uid, first)
			if (!run) continue
			census.waiting += behind.length
			if (run.status === 'paused') census.paused++
			else census.active++
			if (run.question) census.questions++
		}
		if (performance.now() - since < SLICE_MS) continue
		await nextTurn()
		since = performance.now()
	}
	return census
}

/** The same counts as metrics. */
export function runMetrics(runs: Pick<Runs, 'census'>): MetricSource {
	return {
		metrics: {
			svc_runs_active: { help: 'Runs that are active, or about to be.', type: 'gauge' },
			svc_runs_waiting: { help: 'Runs that wait for an earlier run of their conversation.', type: 'gauge' },
			svc_runs_paused: { help: 'Runs that wait for an answer, or for the end of a sub-agent.', type: 'gauge' },
			svc_questions_open: { help: 'Questions that wait for an answer.', type: 'gauge' },
		},
		async read() {
			const { active, waiting, paused, questions } = await runs.census()
			return {
				svc_runs_active: active,
				svc_runs_waiting: waiting,
				svc_runs_paused: paused,
				svc_questions_open: questions,
			}
		},
	}
}
