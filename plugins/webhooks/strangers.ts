import { Fault } from '../../core/errors.ts'
import { networkCounter } from '../shared/network-counter.ts'
import { tryLater } from '../shared/try-later.ts'

/** Requests with unknown tokens from one network in a minute. */
const TRIES = 300

/** Limits requests with unknown tokens. Valid tokens are never limited by it, even from the same address. */
export function openStrangers(clock?: () => number) {
	const count = networkCounter(TRIES, clock)
	return {
		/** The error for an unknown token: `not_found`, or `rate_limited` after 300 within a minute from one network. */
		refuse(address: string): Fault {
			const seconds = count(address)
			if (seconds === 0) return unknownToken()
			return tryLater('rate_limited', 'too many requests with tokens that no webhook has', seconds)
		},
	}
}

export function unknownToken(): Fault {
	return new Fault('not_found', 'there is no webhook with this token; it may have been rotated or deleted')
}
