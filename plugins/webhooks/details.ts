/** What a delivery says of itself, once its signature is right and its payload is read. */
import { hash } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import { TOLERANCE_S } from './schemes.ts'
import type { Scheme } from './schemes.ts'
import { isTimely } from './signature.ts'

export type Details =
	| { problem: string }
	/** Why it is too old, or from the future. */
	| { stale: string }
	/** The sender wants this back, and no run. */
	| { challenge: string }
	/** `sender_id`: the sender's id of the delivery; a repetition has the same. */
	| { sender_id: string | undefined; event: string | undefined }

const LONGEST = 256
const LONGEST_CHALLENGE = 1_000

/** `value`: the payload. `now`: milliseconds since 1970. */
export function detailsOf(
	{ ids, id_field, time_field, event, challenge, signatures, tolerance_s = TOLERANCE_S }: Scheme,
	headers: IncomingHttpHeaders,
	value: unknown,
	now: number = Date.now(),
): Details {
	const fields = (typeof value === 'object' && value !== null ? value : {}) as Record<string, unknown>
	if (time_field !== undefined) {
		const time = fields[time_field]
		if (typeof time !== 'number' || !isTimely(time, tolerance_s, now))
			return {
				stale: `${time_field} in the body is missing, or differs from the gateway's time by more than ${tolerance_s} seconds`,
			}
	}
	if (challenge && fields.type === 'url_verification' && typeof fields.challenge === 'string')
		return { challenge: fields.challenge.slice(0, LONGEST_CHALLENGE) }
	const header = ids.map((one) => one.toLowerCase()).find((one) => headers[one] !== undefined && headers[one] !== '')
	const own = id_field === undefined ? undefined : fields[id_field]
	const id = header === undefined ? (typeof own === 'string' && own !== '' ? own : undefined) : String(headers[header])
	if (id !== undefined && id.length > LONGEST)
		return { problem: `${header ?? id_field} may have ${LONGEST} characters at most` }
	// A signature of a time is as good as an id: a repetition within the tolerance has the same.
	const [timed] = signatures.filter(({ time, read }) => time !== undefined || read === 'fields')
	const signed = timed && headers[timed.header.toLowerCase()]
	return {
		sender_id: id ?? (signed === undefined ? undefined : `signature ${hash('sha256', String(signed))}`),
		event: event === undefined ? undefined : headers[event.toLowerCase()]?.toString(),
	}
}
