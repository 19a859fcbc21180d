/** Extracts a delivery's id and event type, and checks a time in its payload. Called after the signature was verified. */
import { hash } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import { fieldsOf } from '../../core/util/is-object.ts'
import { TOLERANCE_S } from './schemes.ts'
import type { Scheme } from './schemes.ts'
import { isTimely } from './signature.ts'

export type Details =
	| { problem: string }
	/** The time in the payload is missing, too old, or in the future. */
	| { stale: string }
	/** The response to an address check; no run is started. */
	| { challenge: string }
	/** `sender_id`: the sender's id of the delivery; a repeated delivery has the same id. */
	| { sender_id: string | undefined; event: string | undefined }

const ID_LIMIT = 256
const CHALLENGE_LIMIT = 1_000

/** `value`: the payload. `now`: milliseconds since 1970. */
export function detailsOf(
	{ ids, id_field, time_field, event, challenge, signatures, tolerance_s = TOLERANCE_S }: Scheme,
	headers: IncomingHttpHeaders,
	value: unknown,
	now: number = Date.now(),
): Details {
	const fields = fieldsOf(value)
	if (time_field !== undefined) {
		const time = fields[time_field]
		if (typeof time !== 'number' || !isTimely(time, tolerance_s, now))
			return {
				stale: `${time_field} in the body is missing, or differs from the gateway's time by more than ${tolerance_s} seconds`,
			}
	}
	if (challenge && fields.type === 'url_verification' && typeof fields.challenge === 'string')
		return { challenge: fields.challenge.slice(0, CHALLENGE_LIMIT) }
	const header = ids
		.map((name) => name.toLowerCase())
		.find((name) => headers[name] !== undefined && headers[name] !== '')
	const own = id_field === undefined ? undefined : fields[id_field]
	const id = header === undefined ? (typeof own === 'string' && own !== '' ? own : undefined) : String(headers[header])
	if (id !== undefined && id.length > ID_LIMIT)
		return { problem: `${header ?? id_field} must have at most ${ID_LIMIT} characters` }
	// A signature that covers a time serves as an id: a repeated delivery within the tolerance has the same signature.
	const [timed] = signatures.filter(({ time, read }) => time !== undefined || read === 'fields')
	const signed = timed && headers[timed.header.toLowerCase()]
	return {
		sender_id: id ?? (signed === undefined ? undefined : `signature ${hash('sha256', String(signed))}`),
		event: event === undefined ? undefined : headers[event.toLowerCase()]?.toString(),
	}
}
