/** The joi schemas of a third party's routes, with what hapi documents for them: options of the route, context, bind. */
import t from 'tap'
import { startHost } from '../../support/host.ts'

const plugin = `import Joi from 'joi'
export default { name: 'taker', http(server) {
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
	server.route({ method: 'POST', path: '/own', handler, options: { validate: {
		payload: (value, options) => ({ abortEarly: options.abortEarly }), options: { abortEarly: true } } } })
	server.route({ method: 'POST', path: '/standard', handler, options: { validate: {
		payload: { validate: (value) => ({ value }), validateAsync: async (value, options) => ({ mine: value.a, abortEarly: options?.abortEarly ?? null }) } } } })
} }`

void t.test('routes of a plugin validate as hapi documents', async (t) => {
	const host = await startHost(t.testdir(), { 'taker/index.js': plugin }, { taker: {} })
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
	t.match(await post('/own', {}), { status: 200, body: { payload: { abortEarly: true } } }, 'abortEarly of the route')
	t.match(
		await post('/standard', { a: 3 }),
		{ status: 200, body: { payload: { mine: 3 } } },
		'an object with validateAsync alone',
	)
})
