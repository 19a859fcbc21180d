import { Fault } from '../../core/errors.ts'
import { networkCounter } from '../shared/network-counter.ts'
import { tryLater } from '../shared/try-later.ts'

/** Limit of requests with unknown tokens per network and minute. */
const LIMIT = 300

/**
 * Returns a function that makes the error for a request with an unknown token from an address: `not_found`, or `rate_limited` after
 * 300 within a minute from one network. Requests with a valid token do not count.
 */
export function limitUnknownTokens(clock?: () => number): (address: string) => Fault {
	const count = networkCounter(LIMIT, clock)
	return (address) => {
		const seconds = count(address)
		if (seconds === 0) return unknownToken()
		return tryLater('rate_limited', 'too many requests with unknown tokens', seconds)
	}
}

export function unknownToken(): Fault {
	return new Fault('not_found', 'there is no webhook with this token; it may have been rotated or deleted')
}
