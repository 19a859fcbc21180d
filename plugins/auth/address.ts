import { BlockList, isIP } from 'node:net'

const loopback = new BlockList()
loopback.addSubnet('127.0.0.0', 8, 'ipv4')
loopback.addAddress('::1', 'ipv6')

/** 127.0.0.0/8 and ::1, also where an IPv4 address is written as IPv6 (`::ffff:127.0.0.1`, `::ffff:7f00:1`). */
export function isLoopback(address: string): boolean {
	// The list takes a microsecond; these are nearly all that it is asked for.
	if (address === '127.0.0.1' || address === '::1') return true
	const family = isIP(address)
	return family !== 0 && loopback.check(address, family === 4 ? 'ipv4' : 'ipv6')
}

/**
 * The key for counting failed attempts: an IPv4 address (a mapped one counts as IPv4, or one client would have two budgets),
 * or the /64 of an IPv6 address, since a client with one address there usually has all of them.
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
