import { isBoom } from '@hapi/boom'
import type { Boom } from '@hapi/boom'
import type { Request, Server } from '@hapi/hapi'
import { shownPath } from '../../core/http.ts'

export interface ErrorBody {
	success: false
	error: string
}

const methods = ['get', 'post', 'delete'] as const

/** Gives the errors of a server the shape of this surface, whoever's they are: `{success: false, error}`. */
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
		output.payload.message = `there is no ${word} ${shownPath(path)} here; docs/chat-api.md describes what there is`
		if (allowed.length > 0) {
			output.statusCode = 405
			output.headers.allow = allowed.join(', ')
			output.payload.message = `${shownPath(path)} takes ${allowed.join(' or ')}, not ${word}`
		}
	}
	Object.assign(output, { payload: errorBody(output.payload.message) })
}
