/** Reading and changing the records of runs: each change is one commit in the agent's scope. */
import { Fault } from '../../core/errors.ts'
import type { JournalStep } from './journal-step.ts'
import type { RunLog } from './run-log.ts'
import type { NewEvent } from '../../core/protocol.ts'
import { agentScope } from '../../core/store/agent-scope.ts'
import type { Decision } from '../../core/store/change.ts'
import type { Job, Op, Store } from '../../core/store/ports.ts'
import type { RunInputs, RunRecord } from './contract.ts'
import { keys } from './keys.ts'
import type { ConversationQueue, IndexEntry } from './keys.ts'
import { isEnded } from './run-state.ts'
import { callerOf } from './waiting-by-caller.ts'

export type Ended = Pick<RunRecord, 'status'> &
	Partial<Pick<RunRecord, 'answer' | 'tool_calls' | 'finish_reason' | 'error' | 'usage'>>

/** `after`: the question that was answered, or the run that ended. */
export function jobOf(run: RunRef, after?: string): Job {
	// A resumed run gets a new job: the job that executed it until the pause may not be acknowledged yet.
	const id = after === undefined ? run.run_id : `${run.run_id}:${after}`
	return { id, body: { ...bodyOf(run) } }
}

export function bodyOf(run: RunRef): JobBody {
	const { run_id, agent, agent_uid: uid, trigger } = run
	return { run_id, agent, uid, trigger, caller: callerOf(run) }
}

/** What is needed to execute a run. */
export type RunRef = Pick<RunRecord, 'run_id' | 'agent_uid' | 'agent' | 'trigger' | 'actor' | 'caller'>

export interface JobBody extends IndexEntry {
	run_id: string
	/** Absent in jobs of earlier versions. */
	trigger?: string
	/** As `callerOf` returns it. Absent in jobs of earlier versions. */
	caller?: string
}

/** Fields for the log. */
export function aboutJob({ id, body }: Job): Record<string, unknown> {
	return { job: id, run_id: body.run_id, agent: body.agent }
}

/** As `change`, in one transaction with an append to the log of a run. */
export async function appendWith<T>(
	log: RunLog,
	uid: string,
	{ events, step }: { events: NewEvent[]; step?: JournalStep | undefined },
	decide: () => Promise<Decision<T>>,
): Promise<T> {
	let decided: T
	await log.append(events, step, {
		scope: agentScope(uid),
		async ops() {
			const { ops = [], result } = await decide()
			decided = result
			return ops
		},
	})
	return decided!
}

/**
 * The writes that end a run, activate the next run of its conversation, and wake the runs that wait for its end.
 * The result is the jobs of all runs that continue now, to be enqueued. No writes if the run has already ended.
 */
export async function endOps(
	store: Store,
	uid: string,
	run_id: string,
	ended: Ended,
	at: string,
): Promise<Decision<Job[]>> {
	const entry = await store.get<RunRecord>(keys.run(uid, run_id))
	if (!entry || isEnded(entry.value.status)) return { result: [] }
	const { waits_for: _over, waits_for_all: _all, ...before } = entry.value
	const run: RunRecord = { ...before, ...ended, question: null, ended_at: at }
	const ops: Op[] = [{ key: entry.key, value: run, expect: entry.rev }]
	const jobs: Job[] = []
	// The run that continues after the caller's tool calls still needs the inputs.
	if (run.given && !run.tool_calls) ops.push({ key: keys.given(uid, run_id), value: await leftOf(store, run) })

	for (const id of run.waited_by ?? []) {
		const waiting = await store.get<RunRecord>(keys.run(uid, id))
		if (!waiting || isEnded(waiting.value.status)) continue
		// Also written if that run is about to pause: the conflict makes the pause read its record again.
		const { waits_for: _done, waits_for_all: _others, ...rest } = waiting.value
		ops.push({ key: waiting.key, value: { ...rest, status: 'started' } satisfies RunRecord, expect: waiting.rev })
		jobs.push(jobOf(rest, run_id))
	}

	const queue = await store.get<ConversationQueue>(keys.queue(uid, run.conversation))
	if (!queue) return { ops, result: jobs }
	const rest = queue.value.runs.filter((id) => id !== run_id)
	ops.push({ key: queue.key, value: rest.length > 0 ? { runs: rest } : undefined, expect: queue.rev })
	const wasActive = queue.value.runs[0] === run_id
	const next = wasActive && rest[0] !== undefined ? await store.get<RunRecord>(keys.run(uid, rest[0])) : undefined
	if (!next) return { ops, result: jobs }
	const promoted: RunRecord = { ...next.value, status: 'started', started_at: at }
	ops.push({ key: next.key, value: promoted, expect: next.rev })
	return { ops, result: [jobOf(promoted), ...jobs] }
}

/** The inputs of an ended run that later runs of its conversation need. */
async function leftOf(store: Store, run: RunRecord): Promise<RunInputs | undefined> {
	if (!run.goes_on) return undefined
	const given = (await store.get<RunInputs>(keys.given(run.agent_uid, run.run_id)))?.value
	// A run with its own history is not part of a conversation that other runs continue.
	return given?.since && !given.history ? { since: given.since } : undefined
}

/** True if a run that this one started is unfinished. */
export async function hasOpenChild(store: Store, { agent_uid, children = [] }: RunRecord): Promise<boolean> {
	for (const child of children) {
		const entry = await store.get<RunRecord>(keys.run(agent_uid, child))
		if (entry && !isEnded(entry.value.status)) return true
	}
	return false
}

/** The record of a run of the agent with this uid. */
export async function readRun(store: Store, uid: string, run_id: string): Promise<RunRecord | undefined> {
	return (await store.get<RunRecord>(keys.run(uid, run_id)))?.value
}

/** The record of a run, by its id alone. */
export async function findRun(store: Store, run_id: string): Promise<RunRecord | undefined> {
	const index = await store.get<IndexEntry>(keys.index(run_id))
	return index && (await readRun(store, index.value.uid, run_id))
}

/** The same. Throws `not_found`. */
export async function getRun(store: Store, run_id: string): Promise<RunRecord> {
	const run = await findRun(store, run_id)
	if (!run) throw unknownRun(run_id)
	return run
}

export function unknownRun(run_id: string): Fault {
	return new Fault('not_found', `there is no run "${run_id}"`)
}
