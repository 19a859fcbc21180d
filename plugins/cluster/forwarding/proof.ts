/**
 * The header by which a forwarding gateway proves that it belongs to the cluster, and states the addresses of the client's
 * connection:
 *
 *     svc-forwarded: TENURE SENDER NUMBER REMOTE LOCAL MAC
 *
 * REMOTE and LOCAL are the two ends of that connection, or `-`. MAC is an HMAC-SHA256 over all other parts, the method, the target
 * and the address that received the request. A proof is valid once, during one tenure of the working gateway: a sender numbers its
 * requests, and the receiver remembers the last numbers of each sender. No clocks need to agree.
 */
import { createHmac, createSecretKey, hkdfSync, timingSafeEqual } from 'node:crypto'
import type { KeyObject } from 'node:crypto'
import type { Address } from '../../../core/http/listening.ts'
import type { Peer } from '../../shared/peer.ts'
import { BoundedMap } from '../../../core/util/bounded-map.ts'
import { newId } from '../../../core/util/ids.ts'

export const FORWARDED = 'svc-forwarded'

/** The shared secret by which the gateways of one installation recognize each other. */
export interface Secret {
	/** Signs forwarded requests. */
	key: KeyObject
	/** A value for the shared record from which others see whether they have the same key. It does not reveal the key. */
	checkOf(tenure: string): string
}

/** `installation`: the key that all its gateways have. `prefix`: `store.prefix`, which separates installations in one cluster. */
export function secretFrom(installation: KeyObject, prefix: string): Secret {
	const key = createSecretKey(Buffer.from(hkdfSync('sha256', installation, '', `svc gateways ${prefix}`, 32)))
	return {
		key,
		checkOf: (tenure) => createHmac('sha256', key).update(`check\n${tenure}`).digest('base64url').slice(0, 16),
	}
}

export interface Signed {
	address: Address
	method: string
	/** The request target. */
	target: string
}

/** Signs requests that this process forwards. */
export function openSigner(): (key: KeyObject, tenure: string, peer: Peer, request: Signed) => string {
	const sender = newId()
	let number = 0
	return (key, tenure, { remoteAddress, localAddress }, request) => {
		const signed = `${tenure} ${sender} ${++number} ${remoteAddress ?? '-'} ${localAddress ?? '-'}`
		return `${signed} ${macOf(key, signed, request)}`
	}
}

/** Limit of remembered senders; the least recently active one is forgotten first. */
const MAX_SENDERS = 256

/** Returns the ends of the client's connection; null if the proof is invalid, is for another request, or was used before. */
export function openVerifier(): (key: KeyObject, tenure: string, header: string, request: Signed) => Peer | null {
	const senders = new BoundedMap<string, Numbers>(MAX_SENDERS)
	return (key, tenure, header, request) => {
		const cut = header.lastIndexOf(' ')
		const signed = header.slice(0, Math.max(0, cut))
		const given = Buffer.from(header.slice(cut + 1))
		const expected = Buffer.from(macOf(key, signed, request))
		if (given.length !== expected.length || !timingSafeEqual(given, expected)) return null
		const [ofTenure, sender = '', number, remote, local] = signed.split(' ')
		if (ofTenure !== tenure) return null
		const numbers = senders.get(sender) ?? new Numbers()
		senders.set(sender, numbers)
		if (!numbers.use(Number(number))) return null
		const end = (text: string | undefined) => (text === '-' ? undefined : text)
		return { remoteAddress: end(remote), localAddress: end(local) }
	}
}

function macOf(key: KeyObject, signed: string, { address, method, target }: Signed): string {
	return createHmac('sha256', key).update(`forwarded\n${signed}\n${address}\n${method}\n${target}`).digest('base64url')
}

/** Below a sender's highest number minus this, a number counts as used: more than a gateway has open connections. */
const REACH = 32_768

/** The used ones of a sender's numbers 1, 2, …, which arrive out of order. */
class Numbers {
	/** 1 for a used number, at its remainder: 32 KiB in all. */
	readonly #used = new Uint8Array(REACH)
	#highest = 0

	/** Marks a number as used. False if it was used before. */
	use(number: number): boolean {
		if (!(number > this.#highest - REACH)) return false
		for (let passed = this.#highest + 1; passed <= Math.min(number, this.#highest + REACH); passed++)
			this.#used[passed % REACH] = 0
		this.#highest = Math.max(this.#highest, number)
		if (this.#used[number % REACH] === 1) return false
		this.#used[number % REACH] = 1
		return true
	}
}
