/** A check with only the keys of a value has the same result as the complete schema. */
import joi from 'joi'
import type { ObjectSchema, Schema } from 'joi'
import t from 'tap'
import { byPresentKeys } from '../../../core/http/present-keys.ts'

const strict = { abortEarly: false, convert: false } as const
const many = joi.object({
	name: joi.string().max(5).required(),
	count: joi.number().default(1),
	kind: joi.string().when('count', { not: 2, otherwise: joi.required() }),
	a: joi.string().allow('', null),
	b: joi.any().custom((value: unknown) => (value === 1 ? value : Promise.reject(new Error('must be 1')))),
	c: joi.array().items(joi.object({ d: joi.boolean() })),
	d: joi.number().max(joi.ref('e')),
	e: joi.number(),
	f: joi.forbidden(),
	g: joi.object({ h: joi.string().default('i') }),
	h: joi.alternatives(joi.string(), joi.array().items(joi.string()).max(2)),
	i: joi.valid('low', 'high'),
	j: joi.string(),
})

/** Returns the check for a value: its result, the number of keys of its schema, and its description as given and by joi. */
function checksOf(schema: Schema) {
	const check = byPresentKeys(schema, (one, description) => {
		const described = one.describe() as { keys?: object }
		return {
			keys: Object.keys(described.keys ?? {}).length,
			descriptions: [description, described],
			run: (value: unknown) => one.validate(value, strict),
		}
	})
	return (value: unknown) => check(value)
}

const outcome = ({ value, error }: ReturnType<Schema['validate']>): unknown => ({
	value: value as unknown,
	details: error?.details.map(({ message, path, type }) => ({ message, path, type })),
})

void t.test('accepts the same values, and reports the same errors', async (t) => {
	const values: unknown[] = [
		undefined,
		null,
		'text',
		[],
		{},
		{ name: 'ada' },
		{ name: 'ada lovelace', a: 1, b: 1 },
		{ a: undefined, name: 'ada', j: undefined },
		{ name: 'ada', count: 2 },
		{ name: 'ada', c: [{ d: true }, { d: 1 }] },
		{ name: 'ada', d: 3 },
		{ name: 'ada', d: 3, e: 2 },
		{ e: 2, d: 3, name: 'ada', f: null },
		{ name: 'ada', g: {}, h: ['x', 'y', 'z'], i: 'none' },
		{ name: 'ada', k: 1, l: 2 },
		JSON.parse('{"name":"ada","__proto__":1,"constructor":2}'),
	]
	const pairs = (object: ObjectSchema): Schema[] => [
		object,
		object.unknown(),
		object.or('a', 'j').with('i', 'j'),
		object.pattern(/^k$/, joi.string()),
		object.min(2).required(),
	]
	for (const schema of pairs(many)) {
		const check = checksOf(schema)
		for (const value of values) {
			const { run, descriptions } = check(value)
			t.same(outcome(run(value)), outcome(schema.validate(value, strict)), JSON.stringify(value))
			t.strictSame(descriptions[0], descriptions[1], 'the description is that of the schema')
		}
	}
})

void t.test('a schema has the keys of the value, and those that matter when absent', async (t) => {
	const check = checksOf(many)
	t.equal(check({ name: 'ada', a: '', unknown: 1 }).keys, 4, 'name, count, kind, a')
	t.equal(check('text').keys, 13)
	t.equal(check({ a: '' }), check({ name: 'ada', a: 'x', count: 2 }), 'the same check for the same optional keys')
	for (let n = 0; n < 40; n++)
		check(
			Object.fromEntries(
				'a c d e g h i j'
					.split(' ')
					.filter((_, at) => n & (1 << at))
					.map((key) => [key, 1]),
			),
		)
	t.equal(check({ a: '' }).keys, 4, 'the first checks are cached')
	t.equal(check({ j: '', i: 'low', a: '' }).keys, 13, 'the number of cached checks is limited')
})

void t.test('small schemas, and those whose keys depend on each other, are used completely', async (t) => {
	const wide = (keys: Record<string, Schema>): ObjectSchema =>
		joi.object({ ...Object.fromEntries('a b c d e f g h i j'.split(' ').map((key) => [key, joi.any()])), ...keys })
	const model = { self: {} }
	model.self = model
	const complete: Schema[] = [
		joi.object({ a: joi.any(), b: joi.any() }),
		joi.object(),
		joi.string(),
		wide({ k: joi.link('/a') }),
		wide({}).rename('z', 'a'),
		wide({}).when('.a', { not: 1, otherwise: joi.object({ b: joi.required() }) }),
		wide({}).prefs({ presence: 'required' }),
		wide({}).meta({ model }),
	]
	for (const schema of complete) {
		const check = byPresentKeys(schema, (one) => one)
		t.equal(check({ a: 1 }), schema)
	}
	const plain = wide({})
	t.not(byPresentKeys<Schema>(plain, (one) => one)({ a: 1 }), plain)
})
