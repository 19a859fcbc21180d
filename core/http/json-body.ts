/**
 * JSON bodies that the gateway parses instead of hapi.
 *
 * Large bodies: their values are counted before they are parsed. 32 MiB of small values would block the thread for seconds and
 * need hundreds of MiB, although no route accepts more than some thousand values.
 *
 * Short bodies that arrived together with the head of their request, as most do: hapi would wait for them with a stream, a timer
 * and a dozen listeners, which takes a third of its time for the request.
 */
import { badRequest } from '@hapi/boom'
import Bourne from '@hapi/bourne'
import type { Request, RequestRoute } from '@hapi/hapi'
import { Fault } from '../errors.ts'
import { BODY_LIMIT_BYTES } from './body-budget.ts'

/** Limit of the values in a body. */
export const VALUES_LIMIT = 100_000

/** Makes hapi leave the body of a route with a larger limit to `parseBody`. */
export function leaveLargeBody({ settings: { payload } }: RequestRoute): void {
	if (!payload || payload.parse === false || (payload.maxBytes ?? 0) <= BODY_LIMIT_BYTES) return
	if ([payload.allow ?? []].flat().every((type) => isJson(type) || type === BYTES)) payload.parse = 'gunzip'
}

/** Limit of a short body; longer ones rarely arrive with the head. */
const READY_BYTES = 64 * 1024
const JSON_TYPE = /^application\/json(?:; ?charset=utf-8)?$/i

/** Takes a short JSON body that has already arrived; `parseBody` parses it. False if hapi must read it. */
export function takeReadyBody(request: Request): boolean {
	const { headers, raw, route } = request
	const { allow, maxBytes = 0, output, override, parse } = route.settings.payload ?? {}
	if (!parse || output !== 'data' || override !== undefined) return false
	if (allow && !allow.includes('application/json')) return false
	if (headers['content-encoding'] !== undefined || !JSON_TYPE.test(String(headers['content-type']))) return false
	const bytes = raw.req.readableLength
	if (bytes !== Number(headers['content-length']) || bytes > Math.min(READY_BYTES, maxBytes)) return false
	Object.assign(request, { payload: raw.req.read() as Buffer, mime: 'application/json' })
	return true
}

/** Parses JSON that hapi did not. Refuses a large body with too many values with `invalid_request` before it is parsed. */
export function parseBody(request: Request): void {
	const { payload: body, route, mime } = request
	if (!route.settings.payload?.parse || !Buffer.isBuffer(body)) return
	if (body.length > BODY_LIMIT_BYTES && isJson(mime) && hasTooManyValues(body)) throw tooManyValues()
	if (body.length === 0) Object.assign(request, { payload: null })
	else if (isJson(mime)) Object.assign(request, { payload: parse(body) })
}

/** The error for a body with more values than the limit. */
export function tooManyValues(): Fault {
	return new Fault('invalid_request', `the body holds more than ${VALUES_LIMIT} values`)
}

function isJson(type: string | undefined): boolean {
	return type === 'application/json' || (type?.startsWith('application/') === true && type.endsWith('+json'))
}

/** As hapi does: refuses the key `__proto__`. */
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
 * Whether a JSON text certainly contains more than 100,000 values besides the outermost one: each comma separates two, and each
 * bracket opens one. Reads byte by byte, since searching for the next quote is slower if there are many. Bytes of non-ASCII
 * characters never match.
 */
function hasTooManyValues(json: Buffer): boolean {
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
			if (++commas > VALUES_LIMIT) return true
		} else if (byte === BRACKET || byte === BRACE) {
			if (++openings > VALUES_LIMIT + 1) return true
		}
	}
	return false
}
