import { once } from '../shared/once.ts'
import { tryLater } from '../shared/try-later.ts'

const WINDOW_S = 60
const OF_A_CALLER = 5
const IN_ALL = 100
const ALL = 'all'

/** Counts wrong codes: by caller, and in total, since a caller may have many tokens. */
export function openAttempts() {
	// Loaded at the first code: an idle gateway does not have it in memory.
	const limiters = once(async () => {
		const { RateLimiterMemory } = await import('rate-limiter-flexible')
		return {
			own: new RateLimiterMemory({ points: OF_A_CALLER, duration: WINDOW_S }),
			all: new RateLimiterMemory({ points: IN_ALL, duration: WINDOW_S }),
		}
	})
	return {
		/** Throws `rate_limited` after too many; then not even the right code is checked. */
		async check(caller: string): Promise<void> {
			const { own, all } = await limiters()
			for (const count of [await own.get(caller), await all.get(ALL)]) {
				if (!count || count.remainingPoints > 0) continue
				const seconds = Math.max(1, Math.ceil(count.msBeforeNext / 1000))
				throw tryLater('rate_limited', `too many wrong pairing codes; wait ${seconds} s before you try again`, seconds)
			}
		},
		/** Is called only after `check`. True if this was the last attempt that the caller may make for now. */
		async failed(caller: string): Promise<boolean> {
			const { own, all } = await limiters()
			await all.consume(ALL)
			return (await own.consume(caller)).remainingPoints === 0
		},
	}
}
