import { createHmac, randomBytes } from 'node:crypto'
import { once } from '../shared/once.ts'
import { networkOf } from './address.ts'

const FAILURES = 10
const WINDOW_S = 60
/** Upper limit of counters, however many addresses an attacker has. */
const COUNTERS = 16_384

/**
 * Counts failed attempts by the client's network. Returns the seconds to wait after more than 10 in a minute, otherwise 0.
 *
 * Networks share counters by a keyed hash. This bounds the memory, and no client can target the counter of another one. A
 * chance collision affects only failing clients, since a valid token is never counted.
 */
export function failureCounter(): (address: string) => Promise<number> {
	const key = randomBytes(16)
	// Loaded at the first failure: an idle gateway does not have it in memory.
	const limiter = once(async () => {
		const { RateLimiterMemory } = await import('rate-limiter-flexible')
		return new RateLimiterMemory({ points: FAILURES, duration: WINDOW_S })
	})
	return async (address) => {
		const counter = createHmac('sha256', key).update(networkOf(address)).digest().readUInt32BE() % COUNTERS
		const { consumedPoints, msBeforeNext } = await (await limiter()).penalty(String(counter))
		return consumedPoints <= FAILURES ? 0 : Math.max(1, Math.ceil(msBeforeNext / 1000))
	}
}
