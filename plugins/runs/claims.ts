import { messageOf } from '../../core/errors.ts'
import type { Context } from '../../core/plugin.ts'
import type { Lease } from '../../core/store/ports.ts'
import type { RunSettings } from './contract.ts'
import { execute } from './executor.ts'
import type { IndexEntry } from './keys.ts'
import { aboutJob } from './records.ts'

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
		take(ctx, lease).catch((error: unknown) =>
			ctx.log.error({ err: error, ...aboutJob(lease.job) }, 'a job could not be given back'),
		)
	}
}

async function take(ctx: Context<RunSettings>, lease: Lease): Promise<void> {
	const { run_id, uid, agent } = lease.job.body as unknown as IndexEntry & { run_id: string }
	let leave: () => void
	try {
		leave = await ctx.pool.places.take(ctx.signal, false, uid)
	} catch {
		// The next instance claims it.
		return ctx.gateway.state() === 'draining' ? undefined : await lease.release()
	}
	try {
		if (ctx.gateway.state() === 'draining') return // it begins after the next start
		lease.begin()
		await execute(ctx, uid, run_id, lease.attempt)
		await lease.ack()
	} catch (error) {
		if (ctx.gateway.state() === 'draining') return // continues after the next start
		ctx.log.error(
			{ err: error, run_id, agent },
			`a run could not be carried on, it is tried again: ${messageOf(error)}`,
		)
		await lease.release(RETRY_MS)
	} finally {
		leave()
	}
}
