/** Requests of the clients to the scripted model, and the expected answers. */
import assert from 'node:assert/strict'
import { z } from 'zod'

export const city = z.object({ name: z.string(), people: z.number() })
export const weatherArguments = z.object({ city: z.string() })
export const weatherTool = {
	name: 'weather',
	description: 'Tells the weather of a city.',
	parameters: {
		type: 'object',
		properties: { city: { type: 'string' } },
		required: ['city'],
		additionalProperties: false,
	},
}

export const equal = assert.deepEqual

export function isCity(value) {
	equal(value, { name: 'Bern', people: 146348 })
}

/** Asserts the event types of a complete run: none is missing or repeated. Chunks of the answer are only streamed, not stored. */
export function isCompleteRun(types) {
	const stored = types.filter((type) => type !== 'model.stream' && type !== 'run.queued')
	equal(stored[0], 'run.started')
	equal(stored.at(-1), 'run.completed')
	equal(stored, [...new Set(stored)])
	for (const type of ['message.user', 'model.request', 'model.response', 'message.assistant'])
		assert(stored.includes(type), `${type} is missing in ${stored.join(' ')}`)
}
