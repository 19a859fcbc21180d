/** Options that the routes of this API share. */
import type { Schema } from 'joi'
import { scoped } from '../shared/scopes.ts'
import { headers } from './conversations.ts'
import { failure } from './errors.ts'

/** Bodies may contain attachments as base64. */
const BODY_LIMIT_BYTES = 32 * 1024 * 1024

export const commonOptions = {
	tags: ['api', 'openai'],
	plugins: { auth: { agents: 'checked' as const }, openapi: { failure } },
}

/** Options of a route that starts a run, and responds with its complete answer (`whole`) or a stream. */
export const runRoute = ({ payload, whole, streamed }: Record<'payload' | 'whole' | 'streamed', Schema>) => ({
	...commonOptions,
	auth: scoped('runs:write'),
	payload: { maxBytes: BODY_LIMIT_BYTES },
	plugins: {
		...commonOptions.plugins,
		openapi: {
			answers: { 200: { 'text/event-stream': streamed } },
			errors: [404, 409, 502, 503, 504],
			failure,
		},
	},
	validate: { headers, payload },
	response: { status: { 200: whole } },
})
