/** Begins a run: writes its first events, and its record in the same write if the run need not wait for many others. */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { Fault } from '../../core/errors.ts'
import { BoundedMap } from '../../core/util/bounded-map.ts'
import { TransientMap } from '../../core/util/transient-map.ts'
import type { Context } from '../../core/plugin.ts'
import { openRun } from './run-log.ts'
import type { RunLog } from './run-log.ts'
import { agentScope } from '../../core/store/agent-scope.ts'
import type { Op, RecordChange } from '../../core/store/ports.ts'
import type { RunInputs, RunRecord, RunSettings } from './contract.ts'
import { writeBeginning } from './journal.ts'
import { aboutRun } from './preamble.ts'
import type { AboutRun } from './preamble.ts'

/** A run that this process has just created: it executes while its beginning is being written. */
export interface FreshRun {
	run: RunRecord
	/** All appends to it become durable after the beginning. */
	log: RunLog
	/** The caller's inputs, redacted as they are stored. */
	given: RunInputs | undefined
	/** As in the journal. */
	about: string | undefined
	/** Resolves to false if the run could not be stored: then it does not exist, and its caller got the error. */
	isWritten: Promise<boolean>
	/** The run could not be stored, so its model is not called. */
	isRefused: boolean
}

/** Fresh runs that have begun, wait for a place and are kept in memory. Further runs begin once they have a place. */
const LIMIT = 256
const freshRuns = new TransientMap<string, FreshRun>()
/**
 * Ids of the other fresh runs, which are read from the store once they have a place. Bounded by `max_waiting_total`, sub-agents by
 * their own limits.
 */
const freshIds = new Set<string>()

/** Removes a fresh run from memory and returns it. Undefined if it must be read from the store, or its log was taken over. */
export function takeFreshRun(run_id: string): FreshRun | undefined {
	freshIds.delete(run_id)
	const fresh = freshRuns.get(run_id)
	freshRuns.delete(run_id)
	return fresh?.log.isClosed() ? undefined : fresh
}

/** Whether this process has just created the run, and will execute it once it has a place. */
export function isFreshRun(run_id: string): boolean {
	return freshRuns.has(run_id) || freshIds.has(run_id)
}

/** Contexts that plugins are already composing for runs that execute later. */
const pendingAbouts = new BoundedMap<string, Promise<AboutRun | undefined>>(LIMIT)

export function takeAbout(run_id: string): Promise<AboutRun | undefined> | undefined {
	const about = pendingAbouts.get(run_id)
	pendingAbouts.delete(run_id)
	return about
}

interface RunBeginning {
	ops: Op[]
	given: RunInputs | undefined
	execute(run: RunRecord): void
}

/** By agent: the writes of `begin` in progress. */
const writing = new TransientMap<string, Set<Promise<void>>>()

/** Settles once all fresh runs of this agent are stored, or were refused. */
export async function untilStored(agent_uid: string): Promise<void> {
	const all = writing.get(agent_uid)
	if (all) await Promise.allSettled(all)
}

/**
 * Writes `ops`, which create the run's record, together with its first events, unless `LIMIT` runs wait already. Execution begins
 * once this write has been handed to the disk. So the model may be called before the write is durable, but no output is shown
 * before. Throws `conflict` if an expectation does not hold; then the execution ends and leaves nothing behind.
 */
export async function begin(ctx: Context<RunSettings>, run: RunRecord, start: RunBeginning): Promise<void> {
	const { agent_uid } = run
	const all = writing.get(agent_uid) ?? new Set()
	const written = write(ctx, run, start)
	writing.set(agent_uid, all.add(written))
	try {
		await written
	} finally {
		all.delete(written)
		if (all.size === 0) writing.delete(agent_uid)
	}
}

async function write(ctx: Context<RunSettings>, run: RunRecord, start: RunBeginning): Promise<void> {
	const { ops, given, execute } = start
	const { run_id, agent_uid } = run
	const agent = await ctx.use('agents').find(run.agent)
	// The agent is being deleted, which stops its runs.
	if (agent?.uid !== agent_uid) return void (await ctx.store.commit(agentScope(agent_uid), ops))
	if (freshRuns.size >= LIMIT) return writeRecord(ctx, run, start)
	const composed = aboutRun(ctx, run, agent)
	if (!(await Promise.race([composed.then(() => true), nextTurn(false)]))) {
		// The caller need not wait for a slow plugin.
		pendingAbouts.set(run_id, composed)
		return writeRecord(ctx, run, start)
	}
	const about = await composed
	const log = await openRun(ctx.events, { run_id, agent_id: run.agent }, true)
	const written = writeBeginning(log, { run, agent, about }, once(agent_uid, ops))
	// The same redaction as that of the write, which reports it.
	const safe = given && log.redactor.reportingTo(() => {}).data(given, 'record')
	const isWritten = written.then(
		() => true,
		() => false,
	)
	const fresh: FreshRun = { run, log, given: safe, about: about?.content, isWritten, isRefused: false }
	freshRuns.set(run_id, fresh)
	// The write takes longest, and goes to the disk at the end of this turn of the event loop. Execution begins after that.
	setImmediate(() => setImmediate(() => fresh.isRefused || execute(run)))
	try {
		await written
	} catch (error) {
		fresh.isRefused = true
		freshRuns.delete(run_id)
		void ctx.pool.running(run_id)?.abort('the run could not be stored')
		throw error
	}
}

/** Writes the record of a run without its first events, which follow once it has a place. */
async function writeRecord(ctx: Context<RunSettings>, run: RunRecord, { ops, execute }: RunBeginning): Promise<void> {
	await ctx.store.commit(agentScope(run.agent_uid), ops)
	freshIds.add(run.run_id)
	execute(run)
}

/** A change that is not retried after a conflict: the caller must compute new `ops`. */
function once(uid: string, ops: Op[]): RecordChange {
	let isUsed = false
	return {
		scope: agentScope(uid),
		ops() {
			if (isUsed) return Promise.reject(new Fault('conflict', 'the conversation has changed meanwhile'))
			isUsed = true
			return Promise.resolve(ops)
		},
	}
}
