import { isBoom } from '@hapi/boom'
import type { Boom } from '@hapi/boom'
import type { Request, Server } from '@hapi/hapi'
import { isUnrouted } from '../../core/http/server.ts'
import { explainMissing } from '../shared/missing-route.ts'

/** Converts all errors of the server to the body of this API: `{success: false, error}`. */
export function shapeErrors(server: Server): void {
	server.ext('onPreResponse', (request, h) => {
		const { response } = request
		if (isBoom(response)) reshape(request, response)
		return h.continue
	})
}

export function errorBody(error: string): object {
	return { success: false, error }
}

function reshape(request: Request, response: Boom): void {
	const { message, output } = response
	if (isUnrouted(request) && message === 'Bad Request') output.payload.message = 'the path is not well encoded' // instead of hapi's message
	if (isUnrouted(request) && message === 'Not Found') explainMissing(request, response, 'docs/chat-api.md')
	Object.assign(output, { payload: errorBody(output.payload.message) })
}
