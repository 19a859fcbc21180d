import { tryLater } from '../shared/try-later.ts'
import { once } from '../shared/once.ts'
import type { Credentials } from './contract.ts'

const WINDOW_S = 60

/** Counts the requests of callers with a limit. Throws `rate_limited`. There are never more counters than tokens. */
export function requestCounter(): (caller: Credentials, limit: number) => Promise<void> {
	// Loaded on first use: an idle gateway does not have it in memory.
	const counts = once(async () => {
		const { RateLimiterMemory } = await import('rate-limiter-flexible')
		// No limit here: each caller has its own, compared below.
		return new RateLimiterMemory({ points: Number.MAX_SAFE_INTEGER, duration: WINDOW_S })
	})
	return async ({ actor: { kind, id } }, limit) => {
		const { consumedPoints, msBeforeNext } = await (await counts()).penalty(`${kind} ${id}`)
		if (consumedPoints <= limit) return
		const seconds = Math.max(1, Math.ceil(msBeforeNext / 1000))
		const message = `your token may send ${limit} requests per minute (requests_per_minute); wait ${seconds} s`
		throw tryLater('rate_limited', message, seconds)
	}
}
