/** What the clients ask of the scripted model, and what they must get. */
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

/** Types of events of a run, in order: none is missing, none comes twice. Pieces of the answer are live only. */
export function isWholeRun(types) {
	const stored = types.filter((type) => type !== 'model.stream' && type !== 'run.queued')
	equal(stored[0], 'run.started')
	equal(stored.at(-1), 'run.completed')
	equal(stored, [...new Set(stored)])
	for (const type of ['message.user', 'model.request', 'model.response', 'message.assistant'])
		assert(stored.includes(type), `${type} is missing in ${stored.join(' ')}`)
}
