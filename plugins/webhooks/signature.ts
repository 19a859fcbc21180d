import { createHmac, timingSafeEqual } from 'node:crypto'
import type { KeyObject } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'

const names = ['X-Signature', 'X-Hub-Signature-256'] as const
/** Node joins two headers of one name with a comma, which does not match. */
const form = /^sha256=([0-9a-fA-F]{64})$/

/**
 * Null if the body was signed with `key`: HMAC-SHA256 of its exact bytes, as `sha256=` and 64 hexadecimal digits,
 * in any case, in one of the headers or in both. Otherwise the problem, for the sender.
 */
export function signatureProblem(headers: IncomingHttpHeaders, key: KeyObject, body: Uint8Array): string | null {
	const given = names.filter((name) => headers[name.toLowerCase()] !== undefined)
	if (given.length === 0)
		return 'the signature is missing; send the header X-Signature with sha256=<hex HMAC-SHA256 of the body>'
	const expected = digestOf(key, body)
	for (const name of given) {
		const [, digits] = form.exec(String(headers[name.toLowerCase()])) ?? []
		if (digits === undefined) return `${name} must be one header that reads sha256= and 64 hexadecimal digits`
		if (!timingSafeEqual(Buffer.from(digits, 'hex'), expected))
			return `${name} does not fit the body; sign exactly its bytes with the secret of this webhook`
	}
	return null
}

/** The `X-Signature` header for these bytes. */
export function signatureOf(key: KeyObject, body: Uint8Array): string {
	return `sha256=${digestOf(key, body).toString('hex')}`
}

function digestOf(key: KeyObject, body: Uint8Array): Buffer {
	return createHmac('sha256', key).update(body).digest()
}
