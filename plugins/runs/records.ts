/** Reading and changing the records of runs: each change is one commit in the agent's scope. */
import { Fault, isFault } from '../../core/errors.ts'
import type { Job, Op, Store } from '../../core/store/ports.ts'
import type { RunRecord, RunStatus } from './contract.ts'
import { keys, scopeOf } from './keys.ts'
import type { Lane } from './keys.ts'

/** Others may be faster this often before we say that something is wrong. */
const ATTEMPTS = 100

export type Ended = Pick<RunRecord, 'status'> & Partial<Pick<RunRecord, 'answer' | 'tool_calls' | 'error' | 'usage'>>

export function isEnded(status: RunStatus): boolean {
	return status === 'completed' || status === 'failed' || status === 'stopped'
}

/** `after`: the question that was answered, or the run that ended. */
export function jobOf(run: Pick<RunRecord, 'run_id' | 'agent_uid' | 'agent'>, after?: string): Job {
	// Going on makes a job of its own: the one that led to the pause may not be acknowledged yet.
	const id = after === undefined ? run.run_id : `${run.run_id}:${after}`
	return { id, body: { run_id: run.run_id, agent: run.agent, uid: run.agent_uid } }
}

/** For the log. */
export function aboutJob({ id, body }: Job): Record<string, unknown> {
	return { job: id, run_id: body.run_id, agent: body.agent }
}

/** Commits what `build` makes of the present state, again where somebody else changed it meanwhile. Null from `build` means: leave it. */
export async function change<T>(
	store: Store,
	uid: string,
	build: () => Promise<{ ops: Op[]; result: T } | { ops: null; result: T }>,
): Promise<T> {
	for (let attempt = 1; ; attempt++) {
		const { ops, result } = await build()
		if (ops === null) return result
		try {
			await store.commit(scopeOf(uid), ops)
			return result
		} catch (error) {
			if (!isFault(error, 'conflict') || attempt === ATTEMPTS) throw error
		}
	}
}

/**
 * Ends a run, lets the next of its conversation become the active one, and wakes those that wait for its end. Answers
 * with the jobs of all that go on now, to be enqueued. Does nothing where the run has ended already.
 */
export async function endRun(store: Store, uid: string, run_id: string, ended: Ended, at: string): Promise<Job[]> {
	return change<Job[]>(store, uid, async () => {
		const entry = await store.get<RunRecord>(keys.run(uid, run_id))
		if (!entry || isEnded(entry.value.status)) return { ops: null, result: [] }
		const { waits_for: _over, ...before } = entry.value
		const run: RunRecord = { ...before, ...ended, question: null, ended_at: at }
		const ops: Op[] = [{ key: entry.key, value: run, expect: entry.rev }]
		const jobs: Job[] = []
		// Whoever goes on with it needs that still.
		if (run.given && !run.tool_calls) ops.push({ key: keys.given(uid, run_id), value: undefined })

		for (const id of run.waited_by ?? []) {
			const waiting = await store.get<RunRecord>(keys.run(uid, id))
			if (!waiting || isEnded(waiting.value.status)) continue
			// Written also where it is about to be paused only: whoever does that looks again.
			const { waits_for: _done, ...rest } = waiting.value
			ops.push({ key: waiting.key, value: { ...rest, status: 'started' } satisfies RunRecord, expect: waiting.rev })
			jobs.push(jobOf(rest, run_id))
		}

		const lane = await store.get<Lane>(keys.lane(uid, run.conversation))
		if (!lane) return { ops, result: jobs }
		const rest = lane.value.runs.filter((id) => id !== run_id)
		ops.push({ key: lane.key, value: rest.length > 0 ? { runs: rest } : undefined, expect: lane.rev })
		const wasActive = lane.value.runs[0] === run_id
		const next = wasActive && rest[0] !== undefined ? await store.get<RunRecord>(keys.run(uid, rest[0])) : undefined
		if (!next) return { ops, result: jobs }
		const promoted: RunRecord = { ...next.value, status: 'started', started_at: at }
		ops.push({ key: next.key, value: promoted, expect: next.rev })
		return { ops, result: [jobOf(promoted), ...jobs] }
	})
}

/** The record of a run, by its id alone. Throws `not_found`. */
export async function getRun(store: Store, run_id: string): Promise<RunRecord> {
	const index = await store.get<{ uid: string }>(keys.index(run_id))
	const entry = index && (await store.get<RunRecord>(keys.run(index.value.uid, run_id)))
	if (!entry) throw new Fault('not_found', `there is no run "${run_id}"`)
	return entry.value
}
