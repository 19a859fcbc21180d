import type { Boom } from '@hapi/boom'
import type { Request } from '@hapi/hapi'

const methods = ['get', 'post', 'delete'] as const

/**
 * Completes the error for a request without a route: 405 if the path accepts other methods, otherwise a pointer to the list of
 * routes. The caller is not authenticated, so the message does not repeat the path.
 */
export function explainMissing({ method, path, server }: Request, { output }: Boom, docs: string): void {
	const allowed = methods.filter((one) => server.match(one, path)).map((one) => one.toUpperCase())
	const word = method.toUpperCase()
	output.payload.message = `there is no ${word} at this path; ${docs} lists all routes`
	if (allowed.length === 0) return
	output.statusCode = 405
	output.headers.allow = allowed.join(', ')
	output.payload.message = `this path accepts ${allowed.join(' or ')}, not ${word}`
}
