/** Limits requests with unknown tokens. Valid tokens are never limited by it, even from the same address. */
import { createHmac, randomBytes } from 'node:crypto'
import { Fault } from '../../core/errors.ts'
import { tryLater } from '../shared/try-later.ts'

const TRIES = 300
const MINUTE_MS = 60_000
/**
 * Networks share counters by a keyed hash: that bounds the memory, and prevents targeted collisions. If two collide, a
 * client with a wrong token gets 429 instead of 404.
 */
const COUNTERS = 16_384

export function openStrangers(clock: () => number = () => performance.now()) {
	const key = randomBytes(16)
	const tries = new Uint16Array(COUNTERS)
	let minuteEnds = 0
	return {
		/** The error for an unknown token: `not_found`, or `rate_limited` after 300 within a minute from one network. */
		refuse(address: string): Fault {
			const now = clock()
			if (minuteEnds <= now) {
				tries.fill(0)
				minuteEnds = now + MINUTE_MS
			}
			const counter = createHmac('sha256', key).update(networkOf(address)).digest().readUInt32BE() % COUNTERS
			const count = tries[counter] as number
			if (count < TRIES) {
				tries[counter] = count + 1
				return unknownToken()
			}
			return tryLater('rate_limited', 'too many requests with tokens that no webhook has', (minuteEnds - now) / 1000)
		},
	}
}

export function unknownToken(): Fault {
	return new Fault('not_found', 'there is no webhook with this token; it may have been rotated or deleted')
}

/** An IPv4 address, also one written as IPv6, or the /64 of an IPv6 address, which one client usually controls completely. */
function networkOf(address: string): string {
	if (address.includes('.')) return address.slice(address.lastIndexOf(':') + 1)
	const [before = [], after = []] = address.split('::').map((half) => half.split(':').filter(Boolean))
	const gap = Array<string>(Math.max(0, 8 - before.length - after.length)).fill('0')
	return [...before, ...gap, ...after].slice(0, 4).join(':')
}
