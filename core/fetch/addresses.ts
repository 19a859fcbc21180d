/** Which IP addresses are public, and which are private and may be allowed. */
import { isIP } from 'node:net'
import ipaddr from 'ipaddr.js'

/**
 * - `public`: an address on the internet.
 * - `private`: this machine or its own network; may be reached if the caller or the operator allows it.
 * - `forbidden`: never an intended server. Link-local addresses, where clouds serve credentials, and other services of
 *   clouds; multicast; reserved ranges; IPv6 addresses that embed an IPv4 address (NAT64, 6to4, Teredo), since the network
 *   decides where they lead.
 */
export type AddressKind = 'public' | 'private' | 'forbidden'

export interface Judgement {
	kind: AddressKind
	/** The name of its range, for people: `loopback`, `link-local`. */
	range: string
}

/** Services of clouds at addresses that would otherwise count as public or private. */
const cloudServices = new Set(['168.63.129.16', '100.100.100.200', 'fd00:ec2::254', 'fd00:ec2::23', 'fd20:ce::254'])

/** The only part of IPv6 in public use. ipaddr.js calls every unknown range unicast, such as that of ::127.0.0.1. */
const globalUnicast = ipaddr.IPv6.parseCIDR('2000::/3')

const privateRanges = new Set(['loopback', 'private', 'uniqueLocal', 'carrierGradeNat'])

/** Classifies an IP address, written without brackets. Other texts are forbidden. */
export function judge(address: string): Judgement {
	const family = isIP(address)
	if (family === 0) return { kind: 'forbidden', range: 'not an IP address' }
	const ip = ipaddr.process(family === 6 ? inHex(address) : address) // an IPv4-mapped one counts as the IPv4 in it
	if (cloudServices.has(ip.toString())) return { kind: 'forbidden', range: 'a cloud service' }
	const range: string = ip.range()
	if (privateRanges.has(range)) return { kind: 'private', range: wordsOf(range) }
	if (range !== 'unicast') return { kind: 'forbidden', range: wordsOf(range) }
	if (ip.kind() === 'ipv6' && !ip.match(globalUnicast)) return { kind: 'forbidden', range: 'reserved' }
	return { kind: 'public', range: 'public' }
}

/** `::127.0.0.1` → `::7f00:1`, without a zone. ipaddr.js mistakes the first form for an IPv4-mapped address. */
function inHex(address: string): string {
	return new URL(`http://[${address.replace(/%.*/, '')}]`).hostname.slice(1, -1)
}

/** `linkLocal` → `link-local`. */
function wordsOf(range: string): string {
	return range.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)
}
