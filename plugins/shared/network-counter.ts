/** Counts requests of clients by their network, in windows of a minute. */
import { createHmac, randomBytes } from 'node:crypto'
import { isIP } from 'node:net'

const WINDOW_MS = 60_000
/** Upper limit of counters, however many addresses an attacker has. */
const COUNTERS = 16_384

/**
 * The returned function counts a request from an address, and returns 0, or the seconds to wait after more than `limit` in the
 * current minute.
 *
 * Networks share counters by a keyed hash: that bounds the memory, and no client can target the counter of another one. So
 * count only what must be refused anyway: a chance collision then affects no valid request.
 */
export function networkCounter(
	limit: number,
	clock: () => number = () => performance.now(),
): (address: string) => number {
	const key = randomBytes(16)
	const counts = new Uint32Array(COUNTERS)
	let ends = 0
	return (address) => {
		const now = clock()
		if (ends <= now) {
			counts.fill(0)
			ends = now + WINDOW_MS
		}
		const counter = createHmac('sha256', key).update(networkOf(address)).digest().readUInt32BE() % COUNTERS
		const count = (counts[counter] as number) + 1
		counts[counter] = count
		return count <= limit ? 0 : Math.max(1, Math.ceil((ends - now) / 1000))
	}
}

/**
 * An IPv4 address (a mapped one counts as IPv4, or one client would have two counters), or the /64 of an IPv6 address, since a
 * client with one address there usually has all of them.
 */
export function networkOf(address: string): string {
	if (isIP(address) !== 6) return address
	const groups = groupsOf(address)
	const isMapped = groups.slice(0, 5).every((group) => group === 0) && groups[5] === 0xffff
	if (!isMapped)
		return groups
			.slice(0, 4)
			.map((group) => group.toString(16))
			.join(':')
	const [high = 0, low = 0] = groups.slice(6)
	return [high >> 8, high & 0xff, low >> 8, low & 0xff].join('.')
}

/** The eight 16-bit groups of an IPv6 address. */
function groupsOf(address: string): number[] {
	// A zone (fe80::1%eth0) names the interface, not the client. URL writes a dotted tail as two groups.
	const plain = new URL(`http://[${address.replace(/%.*$/, '')}]`).hostname.slice(1, -1)
	const [before = [], after] = plain.split('::').map((half) =>
		half
			.split(':')
			.filter(Boolean)
			.map((group) => parseInt(group, 16)),
	)
	if (!after) return before
	return [...before, ...Array<number>(8 - before.length - after.length).fill(0), ...after]
}
