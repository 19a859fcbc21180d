import { Fault } from '../../core/errors.ts'
import { once } from '../shared/once.ts'
import type { Credentials } from './contract.ts'

const WINDOW_S = 60

/**
 * Counts the requests of callers that have a limit of requests per minute, in windows of a minute that begin with a caller's
 * first request. Throws `rate_limited`. There are never more counters than tokens.
 */
export function requestCounter(): (caller: Credentials, limit: number) => Promise<void> {
	// Loaded with the first limited caller: an idle gateway does not have it in memory.
	const limiter = once(async () => {
		const { RateLimiterMemory } = await import('rate-limiter-flexible')
		// Each caller has a limit of its own, so it is compared below.
		return new RateLimiterMemory({ points: Number.MAX_SAFE_INTEGER, duration: WINDOW_S })
	})
	return async ({ actor: { kind, id } }, limit) => {
		const { consumedPoints, msBeforeNext } = await (await limiter()).consume(`${kind} ${id}`)
		if (consumedPoints <= limit) return
		const seconds = Math.max(1, Math.ceil(msBeforeNext / 1000))
		throw new Fault(
			'rate_limited',
			`your token may send ${limit} requests in a minute (requests_per_minute); wait ${seconds} s`,
			{ headers: { 'retry-after': String(seconds) } },
		)
	}
}
