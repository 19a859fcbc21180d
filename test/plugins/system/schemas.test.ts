/** A joi schema and its JSON Schema accept the same values. */
import Joi from 'joi'
import t from 'tap'
import { exampleOf } from '../../../plugins/system/openapi/examples.ts'
import { Schemas } from '../../../plugins/system/openapi/schemas.ts'
import { checkerOf } from '../../support/openapi.ts'

const word = Joi.string()
const pair = { a: word, b: word }
const cases: Record<string, { schema: Joi.Schema; values: unknown[] }> = {
	or: { schema: Joi.object(pair).or('a', 'b'), values: [{}, { a: 'x' }, { b: 'x' }, { a: 'x', b: 'x' }] },
	xor: { schema: Joi.object(pair).xor('a', 'b'), values: [{}, { a: 'x' }, { b: 'x' }, { a: 'x', b: 'x' }] },
	oxor: { schema: Joi.object(pair).oxor('a', 'b'), values: [{}, { a: 'x' }, { b: 'x' }, { a: 'x', b: 'x' }] },
	and: { schema: Joi.object(pair).and('a', 'b'), values: [{}, { a: 'x' }, { b: 'x' }, { a: 'x', b: 'x' }] },
	nand: { schema: Joi.object(pair).nand('a', 'b'), values: [{}, { a: 'x' }, { b: 'x' }, { a: 'x', b: 'x' }] },
	with: { schema: Joi.object(pair).with('a', 'b'), values: [{}, { a: 'x' }, { b: 'x' }, { a: 'x', b: 'x' }] },
	without: { schema: Joi.object(pair).without('a', 'b'), values: [{}, { a: 'x' }, { b: 'x' }, { a: 'x', b: 'x' }] },
	'two rules': {
		schema: Joi.object({ ...pair, c: word })
			.xor('a', 'b')
			.with('c', 'a'),
		values: [{ a: 'x' }, { b: 'x' }, { a: 'x', c: 'x' }, { b: 'x', c: 'x' }, { c: 'x' }],
	},
	'rules of a nested object': {
		schema: Joi.object({ list: Joi.array().items(Joi.object(pair).xor('a', 'b')) }),
		values: [{ list: [] }, { list: [{ a: 'x' }] }, { list: [{ a: 'x' }, {}] }, { list: [{ a: 'x', b: 'x' }] }],
	},
	'unknown keys': { schema: Joi.object(pair).unknown(), values: [{ c: 1 }, { a: 1 }] },
	'known keys only': { schema: Joi.object(pair), values: [{ c: 1 }, { a: 'x' }] },
	'a choice or null': { schema: Joi.valid('on', 'off').allow(null), values: ['on', null, 'x', ''] },
	'a string of a choice or null': { schema: Joi.string().valid('on').allow(null), values: ['on', null, 'x', 1] },
	'an object or null': { schema: Joi.object(pair).xor('a', 'b').allow(null), values: [null, {}, { a: 'x' }, 'x'] },
	'an object or a word': { schema: Joi.object(pair).xor('a', 'b').allow('all'), values: ['all', 'x', {}, { a: 'x' }] },
	'a forbidden key': { schema: Joi.object({ a: word, b: Joi.forbidden() }), values: [{ a: 'x' }, { b: 'x' }] },
	alternatives: {
		schema: Joi.alternatives(Joi.object(pair).xor('a', 'b'), Joi.number().integer()),
		values: [1, 1.5, {}, { a: 'x' }, 'x'],
	},
	'a list of two types': {
		schema: Joi.array().items(Joi.object(pair).or('a', 'b'), Joi.number()),
		values: [[], [1, { a: 'x' }], [{}], ['x']],
	},
	limits: {
		schema: Joi.object({
			n: Joi.number().integer().min(1).max(3),
			s: Joi.string().min(2).max(3),
			e: Joi.string().allow(''),
		}),
		values: [{ n: 0 }, { n: 1 }, { n: 4 }, { n: 1.5 }, { s: 'x' }, { s: 'xx' }, { s: 'xxxx' }, { e: '' }, { s: '' }],
	},
	'a time': { schema: Joi.string().isoDate(), values: ['2030-01-31T12:00:00.000Z', '2030-01-31T12:00:00Z', 'soon', 1] },
	'hexadecimal text': { schema: Joi.string().hex().length(4), values: ['00fF', '00f', '00fg', ''] },
	'a token': { schema: Joi.string().token(), values: ['a_1', 'a-1', ''] },
	'a pattern that must not match': {
		schema: Joi.string()
			.pattern(/^[a-z]+$/)
			.pattern(/^x/, { invert: true }),
		values: ['abc', 'xbc', 'A', ''],
	},
	'a case-insensitive pattern': {
		schema: Joi.string()
			.max(3)
			.pattern(/^[a-z]+$/i),
		values: ['aB', 'Ab', 'abcd'],
	},
	'the empty string or a pattern': {
		schema: Joi.string().pattern(/^a/).allow('', null),
		values: ['', null, 'a', 'b'],
	},
	'the empty string or a minimum length': { schema: Joi.string().min(3).allow(''), values: ['', 'a', 'abc'] },
	'a choice of all types': { schema: Joi.valid('a', 1, true, null), values: ['a', 1, true, null, 'b', 2, false] },
	'patterns for keys, with rules for their values': {
		schema: Joi.object().pattern(
			Joi.string()
				.pattern(/^[A-Z]+$/)
				.pattern(/^X/, { invert: true }),
			Joi.alternatives(Joi.string(), Joi.object(pair).xor('a', 'b')),
		),
		values: [{}, { A: 'x' }, { A: { a: 'x' } }, { A: {} }, { a: 'x' }, { XA: 'x' }, { A: 1 }],
	},
	'a regular expression for keys': {
		schema: Joi.object().pattern(/^[A-Z]$/, Joi.number()),
		values: [{}, { A: 1 }, { A: 'x' }, { a: 1 }],
	},
}

for (const [name, { schema, values }] of Object.entries(cases)) {
	void t.test(`both schemas accept the same values: ${name}`, async (t) => {
		const json = new Schemas({}).of(schema)
		const check = checkerOf({})
		const accepted = values.map((value) => schema.validate(value, { convert: false }).error === undefined)
		t.ok(accepted.includes(true) && accepted.includes(false), 'some values are valid and some are not')
		for (const [index, value] of values.entries()) {
			t.equal(check(json, value) === '', accepted[index], `${JSON.stringify(value)} by ${JSON.stringify(json)}`)
		}
	})
}

void t.test(
	'a schema with an id is defined once and referenced; another schema with that id stays inline',
	async (t) => {
		const schemas = new Schemas({})
		const point = Joi.object({ x: Joi.number() }).id('Point')
		const inner = schemas.of(Joi.object({ from: point, to: Joi.array().items(point) }))
		const ref = { $ref: '#/components/schemas/Point' }
		t.match(inner, { properties: { from: ref, to: { items: ref } } })
		t.strictSame(schemas.of(point), ref)
		t.match(schemas.of(Joi.object({ y: Joi.number() }).id('Point')), { properties: { y: { type: 'number' } } })
		t.strictSame(Object.keys(schemas.components), ['Point'])
		t.match(schemas.components.Point, { properties: { x: { type: 'number' } } })
	},
)

void t.test('a schema can contain itself', async (t) => {
	const schemas = new Schemas({})
	const json = schemas.of(
		Joi.object({ tree: Joi.object({ value: Joi.number(), child: Joi.link('#Tree') }).id('Tree') }),
	)
	const check = checkerOf(schemas.components)
	t.equal(check(json, { tree: { value: 1, child: { value: 2 } } }), '')
	t.match(check(json, { tree: { value: 1, child: { value: 'x' } } }), /number/)
})

void t.test('examples and descriptions are kept', async (t) => {
	const json = new Schemas({}).of(Joi.object({ name: Joi.string().description('Who.').example('ada') }))
	t.match(json, { properties: { name: { description: 'Who.', examples: ['ada'] } } })
})

void t.test('the example of a schema without one is made of the examples in it', async (t) => {
	const schemas = new Schemas({})
	const example = (schema: Joi.Schema): unknown => exampleOf(schemas.of(schema), schemas)
	const name = Joi.string().required().example('ada')
	t.equal(example(name), 'ada')
	t.strictSame(
		example(Joi.object({ name, nick: Joi.string(), age: Joi.number().example(36), at: Joi.string().isoDate() })),
		{
			name: 'ada',
			age: 36,
		},
	)
	t.strictSame(example(Joi.array().items(Joi.object({ name }).id('Somebody'))), [{ name: 'ada' }])
	t.strictSame(example(Joi.array().items(Joi.string())), [])
	t.strictSame(example(Joi.object({ kind: Joi.valid('a', 'b').required(), n: Joi.string().allow(null).required() })), {
		kind: 'a',
		n: null,
	})
	t.strictSame(example(Joi.object({ name }).example({ name: 'bob' })), { name: 'bob' })
	t.equal(example(Joi.any().example(null)), null)
	// There is no example if a required part has none.
	t.equal(example(Joi.string()), undefined)
	t.equal(example(Joi.object({ name, must: Joi.string().required() })), undefined)
	t.equal(example(Joi.array().items(Joi.string()).min(1)), undefined)
	t.equal(example(Joi.object({ value: Joi.string().required(), child: Joi.link('#Tree') }).id('Tree')), undefined)
})
