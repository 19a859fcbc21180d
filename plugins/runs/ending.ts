/** Ends and stops runs, and continues those that waited for them. */
import { now } from '../../core/util/ids.ts'
import type { Context } from '../../core/plugin.ts'
import type { NewEvent } from '../../core/protocol.ts'
import { openRun, unawaited } from './run-log.ts'
import type { JournalStep } from './journal-step.ts'
import type { RunLog } from './run-log.ts'
import { agentScope } from '../../core/store/agent-scope.ts'
import { change } from '../../core/store/change.ts'
import type { Job, Op, Store } from '../../core/store/ports.ts'
import type { RunEnd } from '../usage/contract.ts'
import type { RunRecord } from './contract.ts'
import { endIn, originIn, writeBeginning } from './journal.ts'
import { keys } from './keys.ts'
import { aboutJob, appendWith, endOps } from './records.ts'
import { isEnded } from './run-state.ts'
import type { Ended } from './records.ts'
import { withRun } from './run-lock.ts'

export type RunDeps = Pick<Context, 'store' | 'queue' | 'events' | 'log' | 'use'>

/**
 * Ends a run: writes its last events, its record and its usage in one transaction, and closes its log. Then the runs that waited
 * for it continue. Unless it completed, the runs that it started are stopped. `count`: as `Account.count`, for an executed run.
 */
export async function end(
	ctx: RunDeps,
	{ run, log, active_ms }: { run: RunRecord; log: RunLog; active_ms?: () => number },
	ended: Ended,
	last: { events: NewEvent[]; step?: JournalStep; count?: (end?: RunEnd) => Promise<Op[]> },
): Promise<void> {
	const { run_id, agent_uid } = run
	const at = now()
	const end: RunEnd | undefined =
		ended.status === 'completed' || ended.status === 'failed'
			? { status: ended.status, active_ms: active_ms?.() ?? run.active_ms }
			: undefined
	const countEnd = async (): Promise<Op[]> =>
		end ? ctx.use('usage').countEnd(run_id, { name: run.agent, uid: agent_uid }, end) : []
	const jobs = appendWith(log, agent_uid, last, async () => {
		const { ops = [], result } = await endOps(ctx.store, agent_uid, run_id, ended, at)
		return { ops: [...ops, ...(await (last.count ?? countEnd)(end))], result }
	})
	// No event may follow the end, such as the result of a tool that ignored a stop.
	log.close()
	await afterEnd(ctx, run, ended, await jobs)
}

/**
 * Takes over the log of a run whose record is unfinished. Null if the log already contains the end: then the record is updated.
 * This happens after a crash between both writes in version 0.1.0, or in a store engine without transactions across both.
 */
export async function openLog(ctx: RunDeps, run: RunRecord): Promise<RunLog | null> {
	const { run_id, agent_uid } = run
	const log = await openRun(ctx.events, { run_id, agent_id: run.agent })
	const ended = endIn(log)
	if (!ended) return log
	log.close()
	const at = log.journal.lastEvent?.timestamp ?? now()
	const jobs = await change(ctx.store, agentScope(agent_uid), () => endOps(ctx.store, agent_uid, run_id, ended, at))
	await afterEnd(ctx, run, ended, jobs)
	return null
}

async function afterEnd(ctx: RunDeps, run: RunRecord, ended: Ended, jobs: Job[]): Promise<void> {
	for (const job of jobs) enqueue(ctx, job)
	if (ended.status !== 'completed') await stopChildren(ctx, run)
}

/** Stops a run and all runs that it started. Settles when all of them have ended. */
export function stop(ctx: RunDeps, uid: string, run_id: string): Promise<void> {
	return withRun(
		run_id,
		async () => {
			const entry = await ctx.store.get<RunRecord>(keys.run(uid, run_id))
			if (!entry) return
			const run = entry.value
			// Runs that a completed run started may still be active.
			const log = isEnded(run.status) ? null : await openLog(ctx, run)
			if (!log) return stopChildren(ctx, run)
			const isUnwritten = run.status === 'started' && log.journal.last === 0
			// It waited for a place behind many others. The log must say what was stopped, and who started it.
			if (isUnwritten) unawaited(writeBeginning(log, { run }))
			const stopped = { event_type: 'run.stopped', payload: {} }
			const events = isUnwritten ? [stopped] : [...originIn(log, run), stopped]
			await end(ctx, { run, log }, { status: 'stopped' }, { events })
		},
		'stopped',
	)
}

/** Stops runs from parent to child only, so that no two stops wait for each other. */
export async function stopChildren(ctx: RunDeps, { agent_uid, run_id }: RunRecord): Promise<void> {
	// Read again: it may have started runs since its record was read.
	const entry = await ctx.store.get<RunRecord>(keys.run(agent_uid, run_id))
	await Promise.all((entry?.value.children ?? []).map((child) => stop(ctx, agent_uid, child)))
}

/** True for an unfinished run whose parent was stopped or failed, which a crash can leave behind. */
export async function isOrphan(store: Store, { agent_uid, parent }: RunRecord): Promise<boolean> {
	if (!parent) return false
	const status = (await store.get<RunRecord>(keys.run(agent_uid, parent.run_id)))?.value.status
	return status === 'stopped' || status === 'failed'
}

/** The conversation queue in the store is the source of truth; a job is only a hint, and the next start replaces a lost one. */
export function enqueue({ queue, log }: Pick<Context, 'queue' | 'log'>, job: Job): void {
	queue
		.enqueue(job)
		.catch((error: unknown) =>
			log.error({ err: error, ...aboutJob(job) }, 'a run could not be queued; it continues after the next start'),
		)
}
