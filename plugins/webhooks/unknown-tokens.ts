import { Fault } from '../../core/errors.ts'
import { networkCounter } from '../shared/network-counter.ts'
import { tryLater } from '../shared/try-later.ts'

/** Limit of requests with unknown tokens per network and minute. */
const LIMIT = 300

/** Limits requests with unknown tokens. Requests with a valid token do not count, even from the same address. */
export function limitUnknownTokens(clock?: () => number) {
	const count = networkCounter(LIMIT, clock)
	return {
		/** The error for an unknown token: `not_found`, or `rate_limited` after 300 within a minute from one network. */
		refuse(address: string): Fault {
			const seconds = count(address)
			if (seconds === 0) return unknownToken()
			return tryLater('rate_limited', 'too many requests with unknown tokens', seconds)
		},
	}
}

export function unknownToken(): Fault {
	return new Fault('not_found', 'there is no webhook with this token; it may have been rotated or deleted')
}
