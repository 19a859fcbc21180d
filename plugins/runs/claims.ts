import { messageOf } from '../../core/errors.ts'
import type { Context } from '../../core/plugin.ts'
import type { Lease } from '../../core/store/ports.ts'
import { withoutContext } from '../../core/util/context.ts'
import { newId } from '../../core/util/ids.ts'
import { isBackground } from './background.ts'
import { takeFreshRun } from './begin.ts'
import type { RunSettings } from './contract.ts'
import { enqueue } from './ending.ts'
import { execute } from './executor.ts'
import { aboutJob, bodyOf } from './records.ts'
import type { JobBody, RunRef } from './records.ts'
import { isHeld, untilFree } from './run-lock.ts'
import { callerOf, waitingByCaller } from './waiting-by-caller.ts'

/** Delay before the retry of a run whose log or record could not be written. */
const RETRY_MS = 5_000

/** Claimed jobs that wait for a place. Fairness between agents covers only these: jobs behind them stay in the queue's order. */
const CLAIMED_LIMIT = 10_000

/**
 * Claims jobs until the plugin instance is released, and executes each once its agent has a place. Active runs outlive the
 * instance: they use resources of the gateway.
 */
export async function claimRuns(ctx: Context<RunSettings>): Promise<void> {
	await ctx.serving
	const free = (): number => (ctx.gateway.state() === 'draining' ? 0 : ctx.pool.capacity + CLAIMED_LIMIT)
	for await (const lease of ctx.queue.claim(free, ctx.signal, false)) {
		executeJob(ctx, lease).catch((error: unknown) =>
			ctx.log.error({ err: error, ...aboutJob(lease.job) }, 'a job could not be returned to the queue'),
		)
	}
}

/**
 * Executes a run that was just created, once its agent has a place. This saves the three writes of a job: if this process ends
 * first, the next start creates the job from the conversation queue.
 */
export function executeNow(ctx: Context<RunSettings>, run: RunRef): void {
	// Not the whole record: it may be large, and thousands of runs may wait.
	executeBody(ctx, bodyOf(run), 1)
}

function executeBody(ctx: Context<RunSettings>, body: JobBody, attempt: number): void {
	const claim: Claim = {
		begin: () => attempt,
		done() {},
		release(delayMs) {
			// The next instance claims it.
			if (delayMs === undefined) enqueue(ctx, { id: `${body.run_id}:${newId()}`, body: { ...body } })
			// A job could not be stored on a full disk either.
			else setTimeout(() => executeBody(ctx, body, attempt + 1), delayMs).unref()
		},
	}
	// The run outlives its cause, such as a request.
	withoutContext(() => void executeInTurn(ctx, body, claim))
}

function executeJob(ctx: Context<RunSettings>, lease: Lease): Promise<void> {
	return executeInTurn(ctx, lease.job.body as unknown as JobBody, {
		begin() {
			lease.begin()
			return lease.attempt
		},
		done: () => lease.ack(),
		release: (delayMs) => lease.release(delayMs),
	})
}

interface Claim {
	/** Returns the number of the attempt. */
	begin(): number
	done(): void | Promise<void>
	/** Requests another attempt, after `delayMs` if given. */
	release(delayMs?: number): unknown
}

async function executeInTurn(
	ctx: Context<RunSettings>,
	{ run_id, uid, agent, trigger, caller = callerOf({ agent_uid: uid }) }: JobBody,
	claim: Claim,
): Promise<void> {
	const priority = isBackground(trigger) ? 'background' : undefined
	const waiting = waitingByCaller(ctx)
	let leave: (() => void) | undefined
	try {
		// After a reload, a run in progress has a second job. It must not occupy a place while the first one executes.
		do {
			leave?.()
			if (isHeld(run_id)) await untilFree(run_id, ctx.signal)
			waiting.add(caller)
			leave = await ctx.pool.places
				.acquire({ signal: ctx.signal, owner: uid, priority })
				.finally(() => waiting.remove(caller))
		} while (isHeld(run_id))
	} catch {
		// The next instance claims it.
		return void (ctx.gateway.state() === 'draining' ? takeFreshRun(run_id) : await claim.release())
	}
	try {
		if (ctx.gateway.state() === 'draining') return void takeFreshRun(run_id) // it continues after the next start
		await execute(ctx, uid, run_id, claim.begin())
		await claim.done()
	} catch (error) {
		if (ctx.gateway.state() === 'draining') return // continues after the next start
		ctx.log.error(
			{ err: error, run_id, agent },
			`a run could not be continued and will be retried: ${messageOf(error)}`,
		)
		await claim.release(RETRY_MS)
	} finally {
		leave()
	}
}
