import { messageOf } from '../../core/errors.ts'
import type { Context } from '../../core/plugin.ts'
import type { Lease } from '../../core/store/ports.ts'
import { withoutContext } from '../../core/util/context.ts'
import { newId } from '../../core/util/ids.ts'
import { takeBegun } from './begin.ts'
import type { RunRecord, RunSettings } from './contract.ts'
import { enqueue } from './ending.ts'
import { execute } from './executor.ts'
import type { IndexEntry } from './keys.ts'
import { aboutJob, jobOf } from './records.ts'
import { isHeld, untilFree } from './run-lock.ts'

/** Delay before a run is retried whose log or record could not be written. */
const RETRY_MS = 5_000

/** Jobs that are claimed and wait for a place. Agents whose jobs are behind these take no turns. */
const CLAIMED_LIMIT = 10_000

/**
 * Claims jobs until the instance is released, and executes each once its agent has a place for it. Active runs then
 * continue: they use resources of the gateway's, not the instance's.
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

type RunIds = Pick<RunRecord, 'run_id' | 'agent_uid' | 'agent'>

/**
 * Executes a run that has just begun, once its agent has a place for it. A job would cost three writes: if this process ends
 * first, the next start makes one of the conversation queue. Of `run` only the ids are kept.
 */
export function executeNow(ctx: Context<RunSettings>, run: RunIds, attempt = 1): void {
	// A record may be large, and thousands of runs may wait.
	const { run_id, agent_uid, agent } = run
	const ids = { run_id, agent_uid, agent }
	const claim: Claim = {
		begin: () => attempt,
		done() {},
		release(delayMs) {
			// The next instance claims it.
			if (delayMs === undefined) enqueue(ctx, jobOf(ids, newId()))
			// On a full disk there is no room for a job either.
			else setTimeout(() => executeNow(ctx, ids, attempt + 1), delayMs).unref()
		},
	}
	// What started it, such as a request, is over long before its end.
	withoutContext(() => void executeInTurn(ctx, { run_id, uid: agent_uid, agent }, claim))
}

function executeJob(ctx: Context<RunSettings>, lease: Lease): Promise<void> {
	return executeInTurn(ctx, lease.job.body as unknown as IndexEntry & { run_id: string }, {
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
	/** Another attempt is to be made, not before `delayMs`. */
	release(delayMs?: number): unknown
}

async function executeInTurn(
	ctx: Context<RunSettings>,
	{ run_id, uid, agent }: IndexEntry & { run_id: string },
	claim: Claim,
): Promise<void> {
	let leave: (() => void) | undefined
	try {
		// After a reload, a run in progress has a second job, which must not occupy a place until the first has ended.
		do {
			leave?.()
			if (isHeld(run_id)) await untilFree(run_id, ctx.signal)
			leave = await ctx.pool.places.take(ctx.signal, false, uid)
		} while (isHeld(run_id))
	} catch {
		// The next instance claims it.
		return void (ctx.gateway.state() === 'draining' ? takeBegun(run_id) : await claim.release())
	}
	try {
		if (ctx.gateway.state() === 'draining') return void takeBegun(run_id) // it is read after the next start
		await execute(ctx, uid, run_id, claim.begin())
		await claim.done()
	} catch (error) {
		if (ctx.gateway.state() === 'draining') return // continues after the next start
		ctx.log.error({ err: error, run_id, agent }, `a run could not be continued, and is retried: ${messageOf(error)}`)
		await claim.release(RETRY_MS)
	} finally {
		leave()
	}
}
