import t from 'tap'
import { send, startGateway } from '../../support/gateway.ts'
import type { Described } from '../../support/openapi.ts'

const shop = `export default {
	name: 'shop',
	http(server, { joi }) {
		const options = { auth: false, plugins: { openapi: { deprecated: '2027-01-31' } } }
		const payload = joi.object({ item: joi.string(), article: joi.string().tag('deprecated') })
		server.route({ method: 'GET', path: '/v1/shop/new', options: { auth: false }, handler: () => 'in' })
		server.route({ method: 'GET', path: '/v1/shop/old', options, handler: () => 'in' })
		server.route({ method: 'POST', path: '/v1/shop/old', options: { ...options, auth: undefined, validate: { payload } }, handler: () => 'in' })
	},
}`

void t.test('deprecated routes and fields are marked in the document, and routes in responses', async (t) => {
	const gateway = await startGateway({ config: 'plugins: {shop: true}\n', files: { 'plugins/shop/index.js': shop } })
	t.teardown(() => gateway.stop())
	const { body } = await gateway.request<Described>('GET', '/v1/openapi.json')
	const { paths } = body as unknown as { paths: Record<string, Record<string, Record<string, never>>> }
	t.equal(paths['/v1/shop/old']?.get?.deprecated, true)
	t.equal(paths['/v1/shop/new']?.get?.deprecated, undefined)
	const properties = (paths['/v1/shop/old'] as unknown as { post: BodyOf }).post.requestBody.content['application/json']
		.schema
	t.strictSame(properties.properties, {
		item: { type: 'string', minLength: 1 },
		article: { type: 'string', minLength: 1, deprecated: true },
	})

	const header = async (method: string, path: string, options = {}) =>
		(await send(gateway.url + path, method, options)).headers.get('deprecation')
	t.equal(await header('GET', '/v1/shop/old'), `@${Date.UTC(2027, 0, 31) / 1000}`)
	t.equal(await header('GET', '/v1/shop/new'), null)
	t.equal(await header('GET', '/v1/agents'), null)
	t.ok(await header('POST', '/v1/shop/old', { body: { wrong: 1 } }), 'an error response has it')
	t.ok(await header('POST', '/v1/shop/old', { token: 'svc_wrong', body: {} }), 'a response to an invalid token has it')
})

interface BodyOf {
	requestBody: { content: { 'application/json': { schema: { properties: unknown } } } }
}
