import { isBoom } from '@hapi/boom'
import type { Boom } from '@hapi/boom'
import type { Request, Server } from '@hapi/hapi'

export interface ErrorBody {
	success: false
	error: string
}

const methods = ['get', 'post', 'delete'] as const

/** Gives all errors of a server the shape of this surface: `{success: false, error}`. */
export function shapeErrors(server: Server): void {
	server.ext('onPreResponse', (request, h) => {
		const { response } = request
		if (isBoom(response)) reshape(request, response)
		return h.continue
	})
}

export function errorBody(error: string): ErrorBody {
	return { success: false, error }
}

function reshape({ method, path, route, server }: Request, { message, output }: Boom): void {
	// hapi's own name for a request that no route fits, and its own words
	const isRouted = (route.method as string) !== '_special'
	if (!isRouted && message === 'Bad Request') output.payload.message = 'the path is not well encoded'
	if (!isRouted && message === 'Not Found') {
		const allowed = methods.filter((one) => server.match(one, path)).map((one) => one.toUpperCase())
		const word = method.toUpperCase()
		// The request is not authenticated, so the path is not repeated.
		output.payload.message = `there is no ${word} at this path; docs/chat-api.md lists all routes`
		if (allowed.length > 0) {
			output.statusCode = 405
			output.headers.allow = allowed.join(', ')
			output.payload.message = `this path accepts ${allowed.join(' or ')}, not ${word}`
		}
	}
	Object.assign(output, { payload: errorBody(output.payload.message) })
}
