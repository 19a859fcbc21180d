/** Joi schemas in routes of third-party plugins, with hapi's options and validation context. */
import t from 'tap'
import { startHost } from '../../support/host.ts'

const plugin = `import Joi from 'joi'
export default { name: 'validator', http(server) {
	const handler = ({ payload, query }) => ({ payload, query })
	server.route({ method: 'POST', path: '/strip', handler, options: { validate: {
		payload: Joi.object({ a: Joi.number() }), options: { stripUnknown: true } } } })
	server.route({ method: 'POST', path: '/allow', handler, options: { validate: {
		payload: Joi.object({ a: Joi.number() }), options: { allowUnknown: true } } } })
	server.route({ method: 'POST', path: '/strict', handler, options: { validate: {
		payload: Joi.object({ a: Joi.number() }), options: { convert: false } } } })
	server.route({ method: 'POST', path: '/context/{max}', handler, options: { validate: {
		params: Joi.object({ max: Joi.number() }),
		payload: Joi.object({ a: Joi.number().max(Joi.ref('$params.max')) }) } } })
	server.route({ method: 'POST', path: '/custom/{max}', handler, options: { validate: {
		payload: Joi.object({ a: Joi.number().custom((value, { prefs }) => value + Number(prefs.context.params.max)) }) } } })
	server.route({ method: 'POST', path: '/external', handler, options: { validate: {
		payload: Joi.object({ a: Joi.number().external(async (value) => value * 2) }) } } })
	server.route({ method: 'POST', path: '/message/{max}', handler, options: { validate: {
		payload: Joi.object({ a: Joi.number().max(1).message('{{#label}} is above {{$params.max}}') }) } } })
	const extended = Joi.extend((joi) => ({ type: 'mine', base: joi.number(),
		validate: (value, { prefs }) => ({ value: value + Number(prefs.context.params.max) }) }))
	server.route({ method: 'POST', path: '/extended/{max}', handler, options: { validate: {
		payload: extended.object({ a: extended.mine() }) } } })
	server.route({ method: 'POST', path: '/default/{max}', handler, options: { validate: {
		payload: Joi.object({ a: Joi.any(), b: Joi.any().default(Joi.ref('$params.max')) }) } } })
	server.route({ method: 'POST', path: '/template/{max}', handler, options: { validate: {
		payload: Joi.object({ b: Joi.any().default(Joi.expression('{@params.max}', { prefix: { global: '@' } })) }) } } })
	const model = { table: 'a' }
	model.self = model
	server.route({ method: 'POST', path: '/meta', handler, options: { validate: {
		payload: Joi.object({ a: Joi.number() }).meta({ model }) } } })
	server.route({ method: 'POST', path: '/plain', handler, options: { validate: {
		payload: Joi.object({ a: Joi.number().required(), type: Joi.string().default('none'),
			examples: Joi.object({ ref: Joi.any() }) }).example({ type: 'unheard-of' }) } } })
	server.route({ method: 'POST', path: '/own', handler, options: { validate: {
		payload: (value, options) => ({ abortEarly: options.abortEarly }), options: { abortEarly: true } } } })
	server.route({ method: 'POST', path: '/refuses', handler, options: { validate: {
		payload: (value) => value.missing.length } } })
	server.route({ method: 'POST', path: '/broken', handler, options: { validate: { payload: Reflect.ownKeys } } })
	server.route({ method: 'POST', path: '/standard', handler, options: { validate: {
		payload: { validate: (value) => ({ value }), validateAsync: async (value, options) => ({ mine: value.a, abortEarly: options?.abortEarly ?? null }) } } } })
} }`

void t.test('routes of a plugin validate as hapi documents', async (t) => {
	const host = await startHost(t.testdir(), { 'validator/index.js': plugin }, { validator: {} })
	t.teardown(() => host.stop())
	const post = async (path: string, body: unknown) => {
		const response = await fetch(host.gateway.status.url('main') + path, {
			method: 'POST',
			headers: { 'content-type': 'application/json' },
			body: JSON.stringify(body),
		})
		return { status: response.status, body: (await response.json()) as Record<string, unknown> }
	}
	t.match(await post('/strip', { a: 1, b: 2 }), { status: 200, body: { payload: { a: 1 } } }, 'stripUnknown')
	t.match(await post('/allow', { a: 1, b: 2 }), { status: 200, body: { payload: { a: 1, b: 2 } } }, 'allowUnknown')
	t.match(await post('/strict', { a: '1' }), { status: 400 }, 'convert: false')
	t.match(await post('/context/5', { a: 9 }), { status: 400 }, 'context: above the limit')
	t.match(await post('/context/5', { a: 3 }), { status: 200 }, 'context: below the limit')
	t.match(
		await post('/custom/5', { a: 1 }),
		{ status: 200, body: { payload: { a: 6 } } },
		'context in a custom function',
	)
	t.match(await post('/external', { a: 4 }), { status: 200, body: { payload: { a: 8 } } }, 'an asynchronous function')
	t.match(
		await post('/message/5', { a: 4 }),
		{ status: 400, body: { message: 'a is above 5' } },
		'context in a message',
	)
	t.match(await post('/extended/5', { a: 1 }), { status: 200, body: { payload: { a: 6 } } }, 'context in a type')
	t.match(await post('/default/5', {}), { status: 200, body: { payload: { b: '5' } } }, 'context in a default')
	t.match(await post('/template/5', {}), { status: 200, body: { payload: { b: 5 } } }, 'context with another prefix')
	t.match(await post('/meta', { a: '1' }), { status: 200, body: { payload: { a: 1 } } }, 'metadata may be cyclic')
	const plain = await post('/plain', { a: '7', examples: { ref: 1 } })
	t.match(plain, { status: 200, body: { payload: { a: 7, type: 'none' } } }, 'converted, with a default')
	const refused = await post('/plain', { b: 1, type: 3 })
	t.match(refused, { status: 400, body: { errors: [{ path: 'a' }, { path: 'type' }, { path: 'b' }] } }, 'all errors')
	t.match(await post('/own', {}), { status: 200, body: { payload: { abortEarly: true } } }, 'abortEarly of the route')
	t.match(
		await post('/standard', { a: 3 }),
		{ status: 200, body: { payload: { mine: 3 } } },
		'an object with validateAsync alone',
	)
	t.match(
		await post('/refuses', {}),
		{ status: 400, body: { code: 'invalid_request' } },
		'a function of the plugin refuses a body by any error',
	)
	t.match(
		await post('/broken', 'text'),
		{ status: 500, body: { code: 'internal' } },
		'an error without details, from no code of the plugin',
	)
})
