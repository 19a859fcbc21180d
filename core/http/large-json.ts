/**
 * Parses the JSON of large bodies, after its values were counted: 32 MiB of small values keep the thread busy for seconds and
 * take hundreds of MiB, although no more than some thousand values are ever taken. Within the ordinary limit hapi parses.
 */
import { badRequest } from '@hapi/boom'
import Bourne from '@hapi/bourne'
import type { Request, RequestRoute } from '@hapi/hapi'
import { Fault } from '../errors.ts'

/** Makes hapi leave the body of a route with a larger limit to `parseLargeBody`. */
export function leaveLargeBody({ settings: { payload } }: RequestRoute, ordinaryBytes: number): void {
	if (!payload || payload.parse === false || (payload.maxBytes ?? 0) <= ordinaryBytes) return
	if ([payload.allow ?? []].flat().every((type) => isJson(type) || type === BYTES)) payload.parse = 'gunzip'
}

/** Throws `invalid_request` for a body of more than `values` values, before it is parsed. */
export function parseLargeBody(request: Request, ordinaryBytes: number, values: number): void {
	const { payload: body, route, mime } = request
	if (route.settings.payload?.parse !== 'gunzip' || !Buffer.isBuffer(body)) return
	if (body.length > ordinaryBytes && isJson(mime) && hasMoreValues(body, values)) throw tooMany(values)
	if (body.length === 0) Object.assign(request, { payload: null })
	else if (isJson(mime)) Object.assign(request, { payload: parse(body) })
}

export function tooMany(values: number): Fault {
	return new Fault('invalid_request', `the body holds more than ${values} values`)
}

function isJson(type: string | undefined): boolean {
	return type === 'application/json' || (type?.startsWith('application/') === true && type.endsWith('+json'))
}

/** As hapi does: a key `__proto__` is refused. */
function parse(body: Buffer): unknown {
	try {
		return Bourne.parse(body.toString('utf8'))
	} catch (error) {
		throw badRequest('Invalid request payload JSON format', error)
	}
}

const BYTES = 'application/octet-stream'
const QUOTE = 0x22
const BACKSLASH = 0x5c
const COMMA = 0x2c
const BRACKET = 0x5b
const BRACE = 0x7b

/**
 * Whether a JSON text certainly holds more than `limit` values besides the outermost: each comma stands between two, and each
 * bracket opens one. One byte after another: to search for the next quote takes longer where there are many. A byte of a
 * character beyond ASCII is none of these.
 */
function hasMoreValues(json: Buffer, limit: number): boolean {
	let commas = 0
	let openings = 0
	let inString = false
	for (let at = 0; at < json.length; at++) {
		const byte = json[at]
		if (inString) {
			if (byte === BACKSLASH) at++
			else if (byte === QUOTE) inString = false
		} else if (byte === QUOTE) inString = true
		else if (byte === COMMA) {
			if (++commas > limit) return true
		} else if (byte === BRACKET || byte === BRACE) {
			if (++openings > limit + 1) return true
		}
	}
	return false
}
