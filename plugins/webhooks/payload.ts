/** The contents of a delivery whose signature is verified. */
import type { IncomingHttpHeaders } from 'node:http'
import type { Scheme } from './schemes.ts'

/** `value`: the payload, parsed. */
type Payload = { payload: string; value: unknown; problem?: undefined } | { payload?: undefined; problem: string }

/**
 * The payload as the text of any valid JSON, or the problem, for the sender. With `forms` the body may be an HTML form: the payload is
 * the JSON in the field `payload`, otherwise an object of all fields.
 */
export function payloadOf(
	headers: IncomingHttpHeaders,
	body: Uint8Array,
	{ forms }: Pick<Scheme, 'forms'> = {},
): Payload {
	const encoding = (headers['content-encoding'] ?? 'identity').trim().toLowerCase()
	if (encoding !== 'identity')
		return { problem: 'the body must not be compressed; send it without the header Content-Encoding' }
	const [first = ''] = (headers['content-type'] ?? '').split(';')
	const type = first.trim().toLowerCase()
	const isForm = forms === true && type === 'application/x-www-form-urlencoded'
	if (!isForm && !JSON_TYPE.test(type))
		return {
			problem:
				'the body must be JSON; send it with the header Content-Type: application/json (at GitHub: Content type application/json)',
		}
	if (body.length === 0) return { problem: 'the body is empty; send JSON' }
	try {
		const text = utf8.decode(body)
		const payload = isForm ? jsonIn(new URLSearchParams(text)) : text
		return { payload, value: JSON.parse(payload) as unknown }
	} catch {
		return { problem: 'the body is not valid JSON in UTF-8' }
	}
}

const JSON_TYPE = /^application\/(?:[\w.+-]+\+)?json$/

function jsonIn(form: URLSearchParams): string {
	return form.get('payload') ?? JSON.stringify(Object.fromEntries(form))
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
