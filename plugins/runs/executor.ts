/**
 * Executes a run from a claimed job to its end or its next pause.
 *
 * The run's log is the source of truth: a step is durable in the log before anything depends on it, and a pause or the end
 * changes the record in the same transaction. So after a crash, the log shows where to continue.
 */
import { isFault, toWire } from '../../core/errors.ts'
import type { Context } from '../../core/plugin.ts'
import { usageOf } from '../../core/protocol.ts'
import { takeAbout, takeFreshRun } from './begin.ts'
import type { FreshRun } from './begin.ts'
import type { RunRecord, RunSettings } from './contract.ts'
import { isOrphan, openLog, stopChildren } from './ending.ts'
import { finish } from './finish.ts'
import { isAtBeginning, writeBeginning } from './journal.ts'
import { unreadableStep } from './journal-step.ts'
import { keys } from './keys.ts'
import { waitsIn } from './open-waits.ts'
import { aboutRun } from './preamble.ts'
import { requestKeeper } from './requests.ts'
import { withRun } from './run-lock.ts'
import type { RunLock } from './run-lock.ts'
import { unawaited } from './run-log.ts'
import { serveThread } from './serve-thread.ts'
import { isEnded } from './run-state.ts'
import { hasApproved, hasUnfinishedBefore, pauseAgain, resume, showPaused } from './waits.ts'
import { inContext, logFieldsOf } from './work.ts'
import type { Final, LoggedRun, Paused, Work } from './work.ts'

/** A step that is still unfinished after this many restarts is not retried. */
const RESTART_LIMIT = 3

/** `attempt`: of its job, from 1. Throws only if the log or store cannot be written. */
export function execute(ctx: Context<RunSettings>, uid: string, run_id: string, attempt: number): Promise<void> {
	return withRun(run_id, async (lock) => {
		const fresh = takeFreshRun(run_id)
		if (fresh && (await executeFresh(ctx, lock, fresh))) return
		for (let isFirst = !fresh && attempt === 1; ; isFirst = false) {
			const entry = await ctx.store.get<RunRecord>(keys.run(uid, run_id))
			if (!entry || entry.value.status === 'queued') return
			const run = entry.value
			if (isEnded(run.status)) return run.status === 'completed' ? undefined : stopChildren(ctx, run)
			const log = await openLog(ctx, run)
			if (!log) return
			lock.writes(log)
			try {
				return await inContext(run, () => executeOnce({ ctx, run, log, lock, isFirst }))
			} catch (error) {
				if (await handle(ctx, run, error)) return
			} finally {
				log.close()
			}
		}
	})
}

/** False if the run must continue from its journal. */
async function executeFresh(ctx: Context<RunSettings>, lock: RunLock, fresh: FreshRun): Promise<boolean> {
	const { run, log, about, isWritten } = fresh
	lock.writes(log)
	try {
		await inContext(run, () => executeOnce({ ctx, run, log, lock, fresh, about }))
		return true
	} catch (error) {
		return !(await isWritten) || (await handle(ctx, run, error))
	} finally {
		log.close()
	}
}

/** Handles an error of the execution. False if the run must continue from its journal. */
async function handle(ctx: Context<RunSettings>, run: RunRecord, error: unknown): Promise<boolean> {
	// Such a write fails at each retry too, and each retry would call the model again.
	if (isFault(error, 'payload_too_large', 'invalid_request')) {
		const log = await openLog(ctx, run)
		if (log)
			await finish({ ctx, run, log }, { status: 'failed', error: toWire(error), usage: usageOf(log.journal.steps) })
		return true
	}
	// Its thread died, perhaps because of another run. The journal has all finished steps.
	if (!isFault(error, 'thread_lost') || ctx.gateway.state() === 'draining') throw error
	ctx.log.warn(logFieldsOf(run), 'the thread of a run was lost; the run continues from its journal')
	return false
}

async function executeOnce(logged: LoggedRun & Pick<Work, 'lock' | 'fresh' | 'about' | 'isFirst'>): Promise<void> {
	const { ctx, run } = logged
	const agent = await ctx.use('agents').find(run.agent)
	if (!agent || agent.uid !== run.agent_uid) return // deleted; the deletion of the agent ends its runs
	if (await isOrphan(ctx.store, run)) return finish(logged, { status: 'stopped' })

	const began = performance.now()
	const active_ms = (): number => Math.round(run.active_ms + performance.now() - began - work.waited_ms)
	const limits = { ...ctx.config.limits, ...agent.config.limits, ...run.limits }
	const account = ctx.use('usage').account(run.run_id, agent, agent.config.limits ?? {}, run.payer)
	const keep = ctx.config.keep_requests > 0 ? requestKeeper(ctx, logged) : undefined
	const work: Work = { ...logged, agent, limits, account, keep, waited_ms: 0, active_ms }
	try {
		const outcome = (work.fresh ? null : await takeUp(work)) ?? (await serveThread(work))
		if (work.fresh && !(await work.fresh.isWritten)) return
		if (outcome.status !== 'paused') await finish(work, outcome)
	} finally {
		account.close()
	}
}

/** Writes that the run begins or continues. Null if it may execute now; otherwise why not: it failed, or must still wait. */
async function takeUp(work: Work): Promise<Final | Paused | null> {
	const { ctx, run, agent, log } = work
	const { last, lastEvent, steps } = log.journal
	if (last === 0 || lastEvent?.event_type === 'run.queued') {
		const about = await (takeAbout(run.run_id) ?? aboutRun(ctx, run, agent))
		work.about = about?.content
		unawaited(writeBeginning(log, { run, agent, about }))
		return null
	}
	const unreadable = unreadableStep(steps)
	if (unreadable !== null) {
		const message = `another version of the gateway executed this run, and this version cannot read one of its steps (${unreadable}); start the run again. Its output so far remains in its events`
		return { status: 'failed', error: { code: 'upgrade_incompatible', message }, usage: usageOf(steps) }
	}
	// The gateway ended before it executed the run.
	if (work.isFirst && isAtBeginning(log)) return null
	const waits = waitsIn(log.journal)
	if (waits.length > 0) {
		const left = await resume(work, waits)
		if (left.length === 0 || (left.length < waits.length && hasApproved(log.journal))) return null
		if (!hasUnfinishedBefore(log.journal, left)) {
			await (left.length < waits.length ? pauseAgain(work, left) : showPaused(work))
			return { status: 'paused' }
		}
	}
	const sinceStep = steps.slice(steps.findLastIndex(({ kind }) => kind === 'model' || kind === 'tool') + 1)
	// A run that waited for a model slot cannot have crashed the gateway.
	const isCounted = !work.lock.departed && lastEvent?.event_type !== 'model.queued'
	work.lock.departed = false
	if (isCounted && sinceStep.filter(({ kind }) => kind === 'restart').length >= RESTART_LIMIT) {
		const message = `the gateway or its thread ended in the same step of this run again after ${RESTART_LIMIT} restarts; it is not retried`
		return { status: 'failed', error: { code: 'restart_loop', message }, usage: usageOf(steps) }
	}
	await log.append(
		[{ event_type: 'run.resumed', payload: { reason: 'restart' } }],
		isCounted ? { kind: 'restart' } : undefined,
	)
	return null
}
