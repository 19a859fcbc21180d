import { once } from '../shared/once.ts'
import { tryLater } from '../shared/try-later.ts'

const WINDOW_S = 60
const CALLER_LIMIT = 5
const TOTAL_LIMIT = 100
const ALL = 'all'

/** Limits wrong codes per caller, and in total, since a caller may have many tokens. */
export function openAttempts() {
	// Loaded with the first code, so that an idle gateway does not load it.
	const limiters = once(async () => {
		const { RateLimiterMemory } = await import('rate-limiter-flexible')
		return {
			own: new RateLimiterMemory({ points: CALLER_LIMIT, duration: WINDOW_S }),
			all: new RateLimiterMemory({ points: TOTAL_LIMIT, duration: WINDOW_S }),
		}
	})
	return {
		/** Throws `rate_limited` after too many wrong codes, even for a correct one. */
		async check(caller: string): Promise<void> {
			const { own, all } = await limiters()
			for (const count of [await own.get(caller), await all.get(ALL)]) {
				if (!count || count.remainingPoints > 0) continue
				const seconds = Math.max(1, Math.ceil(count.msBeforeNext / 1000))
				throw tryLater('rate_limited', `too many wrong pairing codes; wait ${seconds} s before you try again`, seconds)
			}
		},
		/** Counts a wrong code; call it only after `check`. Returns true if the caller has no attempts left for now. */
		async failed(caller: string): Promise<boolean> {
			const { own, all } = await limiters()
			await all.consume(ALL)
			return (await own.consume(caller)).remainingPoints === 0
		},
	}
}
