import { createHmac, randomBytes } from 'node:crypto'
import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible'
import { networkOf } from './address.ts'

const FAILURES = 10
const WINDOW_S = 60
/** Counters that there can be at all, whatever number of addresses an attacker has. */
const COUNTERS = 16_384

/**
 * Counts failed attempts by the client's network. Answers with the seconds to wait once there were more than 10 in a
 * minute, otherwise 0.
 *
 * Networks share counters by a keyed hash: that bounds the memory, nobody outside can aim at somebody else's counter,
 * and where two meet by chance it hurts only failing clients, since a valid token is never counted.
 */
export function failureCounter(): (address: string) => Promise<number> {
	const key = randomBytes(16)
	const limiter = new RateLimiterMemory({ points: FAILURES, duration: WINDOW_S })
	return async (address) => {
		const counter = createHmac('sha256', key).update(networkOf(address)).digest().readUInt32BE() % COUNTERS
		try {
			await limiter.consume(String(counter))
			return 0
		} catch (refused) {
			if (!(refused instanceof RateLimiterRes)) throw refused
			return Math.max(1, Math.ceil(refused.msBeforeNext / 1000))
		}
	}
}
