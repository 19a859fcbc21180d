/**
 * Sends JSON answers without hapi, which spends a fifth of the time of a short request on sending: a dozen asynchronous stages, a
 * readable stream and four listeners for one string. hapi still sends every answer that it would send differently.
 */
import { isBoom } from '@hapi/boom'
import type { Request, ResponseObject, Server } from '@hapi/hapi'
import { isPipelined } from './listeners.ts'
import { hasBody } from './server.ts'

/** The smallest answer that hapi compresses. */
const MIN_COMPRESSED_BYTES = 1024
const WITHOUT_BODY: ReadonlySet<number> = new Set([204, 304])
/** Answers with these headers are left to hapi: it compares the first two with the request, and the last one decides on charset and compression. */
const FOR_HAPI = ['etag', 'last-modified', 'content-type'] as const

/**
 * Must be the last extension of a server: nothing can change an answer afterwards. Only for a server whose requests no third-party
 * plugin sees: such a plugin may use cookies, taps, formatted JSON, or the answer in hapi's events.
 */
export function answerDirectly(server: Server): void {
	server.ext('onPreResponse', (request, h) =>
		isPlain(request) && send(request, request.response) ? h.abandon : h.continue,
	)
}

function isPlain(request: Request): request is Request & { response: ResponseObject } {
	// Missing in hapi's types.
	const { isInjected } = request as { isInjected?: boolean }
	const { response, raw, method } = request
	if (isInjected || method === 'head' || isBoom(response) || response.variety !== 'plain') return false
	const source: unknown = response.source
	if (typeof source !== 'object' || source === null) return false
	if (WITHOUT_BODY.has(response.statusCode)) return false
	if (FOR_HAPI.some((name) => response.headers[name] !== undefined)) return false
	// After a body that was not read, hapi closes the connection.
	return !raw.res.destroyed && (!hasBody(request) || raw.req.readableEnded)
}

/** False if hapi must send it, since the client may accept it compressed. */
function send({ raw: { req, res }, info }: Request, response: ResponseObject): boolean {
	const json = JSON.stringify(response.source)
	const bytes = Buffer.byteLength(json)
	if (bytes >= MIN_COMPRESSED_BYTES) {
		if (info.acceptEncoding !== 'identity') return false
		response.vary('accept-encoding')
	}
	res.setHeader('content-type', 'application/json; charset=utf-8')
	res.setHeader('cache-control', 'no-cache')
	res.setHeader('content-length', bytes)
	for (const [name, value] of Object.entries(response.headers)) if (value !== undefined) res.setHeader(name, value)
	res.statusCode = response.statusCode
	// All answers of one turn of the event loop go out one after another. A socket's write wakes its reader, which on a virtual
	// machine costs more than the rest of the request; a reader that is awake already costs little.
	// Not for pipelined requests: each would wait for a turn, and Node drops the rest once the client has closed its side.
	if (isPipelined(req.socket)) res.end(json)
	else setImmediate(() => res.end(json))
	return true
}
