import hapi from '@hapi/hapi'
import joi from 'joi'
import type { Schema } from 'joi'
import t from 'tap'
import { prepareSchemas } from '../../../core/http/schemas.ts'
import { Joi, later } from '../../../core/util/lazy-joi.ts'

/** A schema, and the number of times it was built. */
function counted<Kind extends Schema>(schema: Kind): { schema: Kind; count: () => number } {
	let count = 0
	const counting = later(() => {
		count++
		return schema
	})
	return { schema: counting, count: () => count }
}

/** The same schema by joi and by our Joi. */
function both(make: (one: typeof joi) => Schema): [Schema, Schema] {
	return [make(joi), make(Joi)]
}

const samples: ((one: typeof joi) => Schema)[] = [
	(one) =>
		one
			.object({ a: one.string().min(2).required(), b: one.array().items(one.number()) })
			.or('a', 'b')
			.id('Pair'),
	(one) => one.alternatives(one.string().isoDate(), one.valid(null, 'now')).description('a time').example('now'),
	(one) =>
		one.object({ a: one.any().when('b', { is: one.exist(), otherwise: one.forbidden() }), b: one.boolean() }).unknown(),
	(one) =>
		one
			.object()
			.pattern(one.string().max(3), one.number().default(1))
			.concat(one.object({ c: one.required() })),
	(one) => one.object({ a: one.object({ b: one.date() }) }).extract('a.b'),
	(one) => one.string().ruleset.min(3).message('too short'),
]

void t.test('schemas equal those of joi', async (t) => {
	for (const make of samples) {
		const [expected, found] = both(make)
		t.strictSame(found.describe(), expected.describe())
		t.strictSame(jsonSchemaOf(make(Joi)), jsonSchemaOf(expected))
		for (const value of [
			undefined,
			null,
			'a',
			'now',
			{ a: 'x', b: [1] },
			{ b: true, a: 1 },
			{ toolong: 1, ab: '2', c: 3 },
		]) {
			const wanted = expected.validate(value, { abortEarly: false })
			t.strictSame(plain(make(Joi).validate(value, { abortEarly: false })), plain(wanted))
			t.strictSame(plain(found.validate(value, { abortEarly: false })), plain(wanted), 'a second time')
		}
	}
})

void t.test('joi accepts them as its own schemas', async (t) => {
	const [name, list] = [Joi.string().min(2), Joi.array().items(Joi.valid('a'))]
	t.ok(joi.isSchema(Joi.any()))
	t.ok(Joi.isSchema(joi.any()))
	const mixed = joi.object({ name, list }).concat(Joi.object({ other: joi.number() }))
	t.equal(mixed.validate({ name: 'ab', list: ['a'], other: 1 }).error, undefined)
	t.equal(mixed.validate({ name: 'a' }).error?.message, '"name" length must be at least 2 characters long')
	t.equal(Object.getPrototypeOf(name), Object.getPrototypeOf(joi.string()))
})

void t.test('a schema is built once, also if others are derived from it', async (t) => {
	const { schema, count } = counted(joi.string())
	const [short, long] = [schema.max(2), schema.min(3)]
	t.equal(count(), 0)
	t.ok(short.validate('abc').error)
	t.ok(long.validate('ab').error)
	t.notOk(schema.validate('ab').error)
	t.equal(count(), 1)
})

void t.test('an invalid schema throws at each use', async (t) => {
	const wrong = Joi.string().min('many' as never)
	t.throws(() => wrong.validate('a'), /limit must be/)
	t.throws(() => wrong.validate('a'), /limit must be/)
})

void t.test('a route builds its schemas at the first request', async (t) => {
	const [params, payload, answer] = [
		counted(joi.object({ id: joi.number() })),
		counted(joi.object({ a: joi.string() })),
		counted(joi.any()),
	]
	const server = hapi.server()
	server.events.on('route', prepareSchemas)
	server.route({
		method: 'POST',
		path: '/{id}',
		options: {
			plugins: { openapi: { body: answer.schema } },
			validate: { params: params.schema, payload: payload.schema.required() },
			response: { sample: 0, status: { 200: answer.schema.required() } },
		},
		handler: ({ params }) => params.id as number,
	})
	t.strictSame(
		[params, payload, answer].map(({ count }) => count()),
		[0, 0, 0],
	)
	const { statusCode, result } = await server.inject({ method: 'POST', url: '/7', payload: { a: 'b' } })
	t.strictSame({ statusCode, result }, { statusCode: 200, result: 7 })
	t.equal((await server.inject({ method: 'POST', url: '/7', payload: { a: 1 } })).statusCode, 400)
	t.strictSame(
		[params, payload, answer].map(({ count }) => count()),
		[1, 1, 0],
	)
})

function jsonSchemaOf(schema: Schema): unknown {
	return schema['~standard'].jsonSchema.input({ target: 'draft-2020-12' })
}

function plain({ value, error }: ReturnType<Schema['validate']>): unknown {
	return {
		value: value as unknown,
		details: error?.details.map(({ message, path, type }) => ({ message, path, type })),
	}
}
