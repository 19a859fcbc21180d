/** The contents of a delivery whose signature is verified. */
import type { IncomingHttpHeaders } from 'node:http'

type Payload = { payload: string; problem?: undefined } | { payload?: undefined; problem: string }

/** The body as text, which is valid JSON of any type; or the problem, for the sender. */
export function payloadOf(headers: IncomingHttpHeaders, body: Uint8Array): Payload {
	const encoding = (headers['content-encoding'] ?? 'identity').trim().toLowerCase()
	if (encoding !== 'identity')
		return { problem: 'the body must not be compressed; send it without the header Content-Encoding' }
	const [type = ''] = (headers['content-type'] ?? '').split(';')
	if (type.trim().toLowerCase() !== 'application/json')
		return {
			problem:
				'the body has another type; send JSON with the header Content-Type: application/json (at GitHub: Content type application/json)',
		}
	if (body.length === 0) return { problem: 'the body is empty; send JSON' }
	try {
		const payload = utf8.decode(body)
		JSON.parse(payload)
		return { payload }
	} catch {
		return { problem: 'the body is not valid JSON in UTF-8' }
	}
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** Headers in which senders put the delivery's id; the first one present counts. */
const names = ['x-delivery-id', 'x-github-delivery', 'webhook-id']
const LONGEST = 256

/** The sender's id of this delivery, if any. */
export function senderIdOf(headers: IncomingHttpHeaders): { sender_id: string | undefined; problem?: string } {
	const name = names.find((one) => headers[one] !== undefined && headers[one] !== '')
	const sender_id = name === undefined ? undefined : String(headers[name])
	if (sender_id === undefined || sender_id.length <= LONGEST) return { sender_id }
	return { sender_id: undefined, problem: `${name} may have ${LONGEST} characters at most` }
}
