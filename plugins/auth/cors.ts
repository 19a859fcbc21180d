/**
 * Lets pages of listed origins read answers (`server.cors_origins`): the CORS protocol of the Fetch standard. Such a page
 * authenticates with a token: its requests never count as local (`local.ts`), and cookies play no part.
 */
import { isBoom } from '@hapi/boom'
import type { Request, ResponseToolkit, Server } from '@hapi/hapi'

const METHODS = 'GET, HEAD, POST, PUT, PATCH, DELETE'
/** Response headers that pages may read, beyond those that the standard always allows. */
const EXPOSED = [
	'content-disposition',
	'etag',
	'location',
	'mcp-protocol-version',
	'mcp-session-id',
	'retry-after',
	'www-authenticate',
	'x-last-event-id',
	'x-request-id',
	'x-should-retry',
	'x-svc-conversation',
	'x-svc-embedder',
	'x-svc-ignored',
	'x-svc-run-id',
].join(', ')
/** What a preflight may ask for in `Access-Control-Request-Headers`: a list of header names of at most 2,048 characters. */
const HEADER_NAMES = /^[\w!#$%&'*+.^`|~-]+(?:[ \t]*,[ \t]*[\w!#$%&'*+.^`|~-]+)*$/
const HEADERS_LIMIT = 2_048
const MAX_AGE_S = 600

export function allowOrigins(server: Server, origins: readonly string[]): void {
	if (origins.length === 0) return
	server.ext('onRequest', (request, h) => {
		// On Node's response, so that event streams and errors have the headers too.
		const { res } = request.raw
		res.setHeader('vary', 'origin')
		const { origin } = request.headers
		if (typeof origin !== 'string' || !origins.includes(origin)) return h.continue
		res.setHeader('access-control-allow-origin', origin)
		if (isPreflight(request)) return answerPreflight(request, h)
		res.setHeader('access-control-expose-headers', EXPOSED)
		return h.continue
	})
	// hapi would replace the header with its own.
	server.ext('onPreResponse', ({ response }, h) => {
		if (!isBoom(response)) response.vary('origin')
		return h.continue
	})
}

function isPreflight({ method, headers }: Request): boolean {
	return method === 'options' && headers['access-control-request-method'] !== undefined
}

function answerPreflight({ headers }: Request, h: ResponseToolkit) {
	const wanted: unknown = headers['access-control-request-headers']
	const response = h
		.response()
		.code(204)
		.header('access-control-allow-methods', METHODS)
		.header('access-control-max-age', String(MAX_AGE_S))
	// Client libraries send additional headers. The code that reads a header validates it.
	if (typeof wanted === 'string' && wanted.length <= HEADERS_LIMIT && HEADER_NAMES.test(wanted))
		response.header('access-control-allow-headers', wanted)
	// Private Network Access: a public page requests an address of this machine or network.
	if (headers['access-control-request-private-network'] === 'true')
		response.header('access-control-allow-private-network', 'true')
	return response.takeover()
}
