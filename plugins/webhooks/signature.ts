/** Verifies the signature of a delivery by its webhook's scheme. */
import { createHmac, hash, timingSafeEqual } from 'node:crypto'
import type { KeyObject } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import { schemes, TOLERANCE_S } from './schemes.ts'
import type { Scheme, SignatureRule } from './schemes.ts'

/**
 * Null if the body is signed with `key`; otherwise the problem, for the sender. Hexadecimal digests may be in any case.
 * `now`: milliseconds since 1970.
 */
export function signatureProblem(
	headers: IncomingHttpHeaders,
	key: KeyObject,
	body: Uint8Array,
	{ signatures, tolerance_s = TOLERANCE_S }: Scheme = schemes.svc,
	now: number = Date.now(),
): string | null {
	const given = signatures.filter(({ header }) => textOf(headers, header) !== undefined)
	const [first] = signatures
	if (given.length === 0) return `the signature is missing; send the header ${first?.header} with ${wanted(first)}`
	for (const rule of given) {
		const problem = problemOf(rule, headers, key, body, tolerance_s, now)
		if (problem !== null) return problem
	}
	return null
}

function problemOf(
	rule: SignatureRule,
	headers: IncomingHttpHeaders,
	key: KeyObject,
	body: Uint8Array,
	tolerance_s: number,
	now: number,
): string | null {
	const { header, read, time: time_header, id: id_header, signed = '{body}', algorithm = 'sha256' } = rule
	const value = textOf(headers, header) ?? ''
	if (read === 'token') {
		const { prefix = '' } = rule
		const isSame = value.startsWith(prefix) && timingSafeEqual(digest(value.slice(prefix.length)), digest(key.export()))
		return isSame ? null : `${header} is not the secret of this webhook`
	}
	const { digests, time: own } = readHeader(rule, value)
	if (digests.length === 0) return `${header} must be sent once, with ${wanted(rule)}`
	const timestamp = time_header === undefined ? own : textOf(headers, time_header)
	const id = id_header === undefined ? undefined : textOf(headers, id_header)
	if (signed.includes('{timestamp}') && timestamp === undefined)
		return `the timestamp is missing in ${time_header ?? header}`
	if (signed.includes('{id}') && id === undefined) return `the header ${id_header} is missing`
	const hmac = createHmac(algorithm, key)
	for (const part of signed === '{body}' ? [signed] : signed.split(/(\{(?:body|timestamp|id)\})/))
		hmac.update(
			part === '{body}' ? body : part === '{timestamp}' ? (timestamp ?? '') : part === '{id}' ? (id ?? '') : part,
		)
	const expected = hmac.digest()
	if (!digests.some((one) => one.length === expected.length && timingSafeEqual(one, expected)))
		return `${header} does not match the body; sign exactly its bytes with the secret of this webhook`
	// Checked last, so that a wrong secret is not reported as a wrong clock.
	if (timestamp === undefined || isTimely(timestamp, tolerance_s, now)) return null
	return `the timestamp "${timestamp.slice(0, 32)}" differs from the gateway's time by more than ${tolerance_s} seconds`
}

/** Whether a time, in s or ms since 1970, differs from `now` (ms) by at most the tolerance. This limits replays. */
export function isTimely(time: string | number, tolerance_s: number, now: number): boolean {
	if (!/^\d{1,15}$/.test(String(time))) return false
	const value = Number(time)
	const ms = value < MIN_MILLISECONDS ? value * 1000 : value
	return Math.abs(now - ms) <= tolerance_s * 1000
}

/** Several digests if the sender is rotating its secret. */
function readHeader(rule: SignatureRule, value: string): { digests: Buffer[]; time?: string } {
	const { read, prefix = '' } = rule
	if (read === 'plain') return { digests: value.startsWith(prefix) ? bytesIn(rule, value.slice(prefix.length)) : [] }
	if (read === 'versions') {
		const ones = value.split(' ').filter((one) => one.startsWith('v1,'))
		return { digests: ones.slice(0, DIGEST_LIMIT).flatMap((one) => bytesIn(rule, one.slice(3))) }
	}
	const fields = value.split(',').map((field) => field.trim().split('='))
	const time = fields.find(([name]) => name === 't')?.[1]
	const ones = fields.filter(([name]) => name === 'v1').map(([, one = '']) => one)
	return {
		digests: ones.slice(0, DIGEST_LIMIT).flatMap((one) => bytesIn(rule, one)),
		...(time !== undefined && { time }),
	}
}

/** Larger times are in milliseconds, smaller ones in seconds. */
const MIN_MILLISECONDS = 100_000_000_000
/** Limit of compared digests of one header. */
const DIGEST_LIMIT = 10
const SIZES = { sha1: 20, sha256: 32, sha512: 64 }

/** The decoded digest; empty if its encoding or length is wrong. */
function bytesIn({ encoding = 'hex', algorithm = 'sha256' }: SignatureRule, text: string): Buffer[] {
	const bytes = Buffer.from(text, encoding)
	const isWhole =
		encoding === 'hex'
			? /^[0-9a-fA-F]*$/.test(text) && text.length === bytes.length * 2
			: bytes.toString('base64') === text
	return isWhole && bytes.length === SIZES[algorithm] ? [bytes] : []
}

/** Node joins a repeated header with a comma, so that it matches nothing. */
function textOf(headers: IncomingHttpHeaders, name: string): string | undefined {
	const value = headers[name.toLowerCase()]
	return value === undefined ? undefined : String(value)
}

function digest(value: string | Buffer): Buffer {
	return hash('sha256', value, 'buffer')
}

function wanted(rule?: SignatureRule): string {
	if (!rule || rule.read === 'token') return 'the secret'
	const { read, prefix = '', algorithm = 'sha256', encoding = 'hex', signed = '{body}' } = rule
	const form = { plain: prefix, versions: 'v1,', fields: 't=TIME,v1=' }[read]
	const digits = encoding === 'hex' ? `${SIZES[algorithm] * 2} hexadecimal digits` : 'base64'
	return `${form === '' ? '' : `${form} and `}${digits}: the HMAC-${algorithm.toUpperCase()} of ${signed === '{body}' ? 'the body' : signed}`
}
