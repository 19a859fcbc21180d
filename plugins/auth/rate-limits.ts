/** Counters of failed attempts, and of requests of callers that have a limit, in windows of a minute. */
import { createHmac, randomBytes } from 'node:crypto'
import { tryLater } from '../shared/try-later.ts'
import { once } from '../shared/once.ts'
import { networkOf } from './address.ts'
import type { Credentials } from './contract.ts'

const FAILURES = 10
const WINDOW_S = 60
/** Upper limit of counters of failures, however many addresses an attacker has. */
const COUNTERS = 16_384

/**
 * Counts failed attempts by the client's network. Returns the seconds to wait after more than 10 in a minute, otherwise 0.
 *
 * Networks share counters by a keyed hash. This bounds the memory, and no client can target the counter of another one. A
 * chance collision affects only failing clients, since a valid token is never counted.
 */
export function failureCounter(): (address: string) => Promise<number> {
	const key = randomBytes(16)
	const count = counter()
	return (address) => {
		const digest = createHmac('sha256', key).update(networkOf(address)).digest()
		return count(String(digest.readUInt32BE() % COUNTERS), FAILURES)
	}
}

/** Counts the requests of callers that have a limit. Throws `rate_limited`. There are never more counters than tokens. */
export function requestCounter(): (caller: Credentials, limit: number) => Promise<void> {
	const count = counter()
	return async ({ actor: { kind, id } }, limit) => {
		const seconds = await count(`${kind} ${id}`, limit)
		if (seconds === 0) return
		const message = `your token may send ${limit} requests in a minute (requests_per_minute); wait ${seconds} s`
		throw tryLater('rate_limited', message, seconds)
	}
}

/** Returns the seconds to wait after more than `limit` in a window, otherwise 0. */
function counter(): (key: string, limit: number) => Promise<number> {
	// Loaded at the first use: an idle gateway does not have it in memory.
	const counts = once(async () => {
		const { RateLimiterMemory } = await import('rate-limiter-flexible')
		// The limit of a caller is compared below.
		return new RateLimiterMemory({ points: Number.MAX_SAFE_INTEGER, duration: WINDOW_S })
	})
	return async (key, limit) => {
		const { consumedPoints, msBeforeNext } = await (await counts()).penalty(key)
		return consumedPoints <= limit ? 0 : Math.max(1, Math.ceil(msBeforeNext / 1000))
	}
}
