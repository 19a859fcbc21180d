import { Fault } from '../../core/errors.ts'
import { once } from '../shared/once.ts'

/** Counts wrong codes: by caller, and in total, since a caller may have many tokens. */
export interface Attempts {
	/** Throws `rate_limited` after too many; then not even the right code is checked. */
	check(caller: string): Promise<void>
	/** True if this was the last attempt that the caller may make for now. */
	failed(caller: string): Promise<boolean>
}

const WINDOW_S = 60
const OF_A_CALLER = 5
const IN_ALL = 100
const ALL = 'all'

export function openAttempts(): Attempts {
	// Loaded at the first code: an idle gateway does not have it in memory.
	const limiters = once(async () => {
		const { RateLimiterMemory } = await import('rate-limiter-flexible')
		// `check` refuses before these are full, so that no more callers than IN_ALL are ever counted.
		const options = { points: IN_ALL + 1, duration: WINDOW_S }
		return { own: new RateLimiterMemory(options), all: new RateLimiterMemory(options) }
	})
	return {
		async check(caller) {
			const { own, all } = await limiters()
			for (const [limiter, key, limit] of [
				[own, caller, OF_A_CALLER],
				[all, ALL, IN_ALL],
			] as const) {
				const count = await limiter.get(key)
				if (!count || count.consumedPoints < limit) continue
				const seconds = Math.max(1, Math.ceil(count.msBeforeNext / 1000))
				throw new Fault('rate_limited', `too many wrong pairing codes; wait ${seconds} s before you try again`, {
					headers: { 'retry-after': String(seconds) },
				})
			}
		},
		async failed(caller) {
			const { own, all } = await limiters()
			await all.consume(ALL)
			return (await own.consume(caller)).consumedPoints === OF_A_CALLER
		},
	}
}
