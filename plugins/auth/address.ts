import { BlockList, isIP } from 'node:net'

const loopback = new BlockList()
loopback.addSubnet('127.0.0.0', 8, 'ipv4')
loopback.addAddress('::1', 'ipv6')

/** 127.0.0.0/8 and ::1, also where an IPv4 address is written as IPv6 (`::ffff:127.0.0.1`, `::ffff:7f00:1`). */
export function isLoopback(address: string): boolean {
	// A fast path for nearly all calls: the list takes a microsecond.
	if (address === '127.0.0.1' || address === '::1') return true
	const family = isIP(address)
	return family !== 0 && loopback.check(address, family === 4 ? 'ipv4' : 'ipv6')
}
