import Joi from 'joi'
import t from 'tap'
import { withPreferences } from '../../../core/http/schemas.ts'
import { presentFields } from '../../../plugins/openai-api/present-fields.ts'
import { refused } from '../../../plugins/openai-api/fields.ts'

const required = { model: Joi.string().min(1).max(8).required() }
const optional = {
	n: refused('must be 1', [1]),
	temperature: Joi.number().max(2).allow(null),
	options: Joi.object({ usage: Joi.boolean(), list: Joi.array().items(Joi.object({ id: Joi.string().required() })) }),
}

void t.test('a body gets the same value or errors as from a schema of all fields', (t) => {
	const whole = Joi.object({ ...required, ...optional })
		.required()
		.prefs({ convert: false })
	const present = presentFields(required, optional).required().prefs({ convert: false })
	const bodies: unknown[] = [
		undefined,
		null,
		'text',
		[],
		[{ n: 2 }],
		{},
		{ model: 'ada' },
		{ model: 'ada', n: 1, temperature: null, options: { usage: true, list: [{ id: 'a' }] } },
		{ model: 'ada', temperature: '1' },
		{ options: { list: [{}, { id: 1 }], more: 1 }, unknown: 1, temperature: 3, n: 2, model: 'x'.repeat(9), also: null },
		{ n: 2, toString: 1, constructor: {}, hasOwnProperty: 1 },
	]
	for (const abortEarly of [false, true]) {
		for (const body of bodies) {
			const [one, other] = [whole, present].map((schema) => withPreferences(schema, abortEarly).validate(body))
			t.strictSame(other?.value, one?.value)
			t.equal(other?.error?.message, one?.error?.message)
			t.strictSame(
				other?.error?.details.map(({ message, path, type }) => ({ message, path, type })),
				one?.error?.details.map(({ message, path, type }) => ({ message, path, type })),
			)
		}
	}
	t.end()
})
