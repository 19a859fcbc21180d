import { createHmac, timingSafeEqual } from 'node:crypto'
import type { KeyObject } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'

const names = ['X-Signature', 'X-Hub-Signature-256'] as const
/** Of two headers of one name Node makes one with a comma in it, which is none of these. */
const form = /^sha256=([0-9a-f]{64})$/

/**
 * Null where the body was signed with `key`: HMAC-SHA256 of its very bytes, as `sha256=` and 64 lower-case hexadecimal
 * digits in one of the headers, or in both. Otherwise what is wrong, for the sender.
 */
export function signatureProblem(headers: IncomingHttpHeaders, key: KeyObject, body: Uint8Array): string | null {
	const given = names.filter((name) => headers[name.toLowerCase()] !== undefined)
	if (given.length === 0)
		return 'the signature is missing; send the header X-Signature with sha256=<hex HMAC-SHA256 of the body>'
	const expected = digestOf(key, body)
	for (const name of given) {
		const [, digits] = form.exec(String(headers[name.toLowerCase()])) ?? []
		if (digits === undefined)
			return `${name} must be one header that reads sha256= and 64 lower-case hexadecimal digits`
		if (!timingSafeEqual(Buffer.from(digits, 'hex'), expected))
			return `${name} does not fit the body; sign its very bytes with the secret of this webhook`
	}
	return null
}

/** What a sender puts into `X-Signature` for these bytes. */
export function signatureOf(key: KeyObject, body: Uint8Array): string {
	return `sha256=${digestOf(key, body).toString('hex')}`
}

function digestOf(key: KeyObject, body: Uint8Array): Buffer {
	return createHmac('sha256', key).update(body).digest()
}
