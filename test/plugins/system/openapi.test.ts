import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { parse } from 'yaml'
import { startGateway } from '../../support/gateway.ts'
import { checkerOf, operationsOf, resolve } from '../../support/openapi.ts'
import type { Described } from '../../support/openapi.ts'
import { openStream } from '../../support/sse.ts'

const shop = `export default {
	name: 'shop',
	needs: ['auth'],
	http(server, ctx) {
		server.route({ method: 'GET', path: '/v1/shop/{item}/{rest*}', options: { description: 'Look' }, handler: () => 'in' })
		server.route({ method: '*', path: '/v1/shop', options: { auth: false }, handler: () => 'in' })
		const odd = { validate: (value) => ({ value }), type: 'object', describe() { throw new Error('no words') } }
		const mute = { ...odd, '~standard': { jsonSchema: { input() { throw new Error('no words') } } } }
		const validate = { query: odd, payload: mute }
		server.route({ method: 'POST', path: '/v1/shop/odd', options: { auth: false, validate }, handler: () => 'in' })
	},
}`

const required = [
	'GET /healthz',
	'GET /readyz',
	'GET /v1/health',
	'GET /v1/plugins',
	'GET /v1/openapi.json',
	'POST /v1/auth/tokens',
	'GET /v1/auth/tokens',
	'DELETE /v1/auth/tokens/{id}',
	'POST /v1/agents',
	'GET /v1/agents',
	'GET /v1/agents/{name}',
	'PATCH /v1/agents/{name}',
	'DELETE /v1/agents/{name}',
	'POST /v1/agents/{name}/runs',
	'GET /v1/agents/{name}/runs',
	'GET /v1/runs/{run_id}',
	'POST /v1/runs/{run_id}/cancel',
	'POST /v1/agents/{name}/stop',
	'POST /v1/agents/{name}/reset',
	'GET /v1/agents/{name}/history',
	'GET /v1/agents/{name}/questions',
	'POST /v1/agents/{name}/ask-responses/{question_id}',
	'GET /v1/events/stream',
	'GET /v1/audit',
	'GET /v1/shop/{item}/{rest}',
	'GET /v1/shop',
	'DELETE /v1/shop',
	'POST /v1/shop/odd',
]

void t.test('GET /v1/openapi.json', async (t) => {
	const gateway = await startGateway({ config: 'plugins: {shop: true}\n', files: { 'plugins/shop/index.js': shop } })
	t.teardown(() => gateway.stop())
	const { status, body } = await gateway.request<Described>('GET', '/v1/openapi.json')
	t.equal(status, 200)
	const operations = operationsOf(body)
	const ofMain = operations.filter(({ server }) => !server)
	const check = checkerOf(body.components.schemas)

	await t.test('is OpenAPI 3.1 with all routes, those of third-party plugins too', async (t) => {
		t.match(body, { openapi: '3.1.0', info: { title: String, version: /^\d/ } })
		const found = operations.map(({ method, path }) => `${method.toUpperCase()} ${path}`)
		for (const route of required) t.ok(found.includes(route), route)
	})

	await t.test('omits a schema that cannot describe itself', async (t) => {
		const { parameters, requestBody, tags } = body.paths['/v1/shop/odd']?.post ?? {}
		t.equal(parameters, undefined)
		t.strictSame(requestBody, { required: false, content: { 'application/json': { schema: {} } } })
		t.strictSame(tags, [])
	})

	await t.test('describes only operations that exist', async (t) => {
		for (const { method, path, operation } of ofMain) {
			const headers = { 'x-forwarded-for': '192.0.2.7' }
			const url = path.replaceAll(/\{\w+\}/g, 'nothing')
			const reply = await gateway.request(method.toUpperCase(), url, { headers })
			const isPublic = operation['x-scope'] === undefined
			// The path names something that does not exist, such as a webhook, a file of a page or a login.
			const isMissing = path.includes('{') || /^\/(\.well-known|v1\/auth\/(login|callback))/.test(path)
			const statuses: Record<string, number> = { '/v1/mcp/callback': 400, '/v1/auth/logout': 204 }
			const publicStatus = isMissing ? 404 : (statuses[path] ?? 200)
			t.equal(reply.status, isPublic ? publicStatus : 401, `${method} ${path} without a token`)
		}
	})

	await t.test('gives each operation a unique id, a summary, tags, and the parameters of its path', async (t) => {
		const ids = operations.map(({ operation }) => operation.operationId)
		t.equal(new Set(ids).size, ids.length)
		for (const { method, path, operation } of operations) {
			t.match(operation.operationId, /^[a-z][A-Za-z0-9]+$/)
			if (!path.startsWith('/v1/shop')) {
				t.ok((operation.summary ?? '').length > 3, `${method} ${path} has a summary`)
				t.ok(operation.tags.length > 0, `${method} ${path} has a tag`)
			}
			for (const tag of operation.tags) t.ok(body.tags.some(({ name }) => name === tag))
			const inPath = [...path.matchAll(/\{(\w+)\}/g)].map((match) => match[1] ?? '')
			const declared = (operation.parameters ?? []).filter((parameter) => parameter.in === 'path')
			t.strictSame(declared.map(({ name }) => name).toSorted(), inPath.toSorted(), `${method} ${path}`)
			for (const parameter of declared) t.equal(parameter.required, true)
		}
	})

	await t.test('states scope and token for exactly the operations that need them', async (t) => {
		const scopeOf = (method: string, path: string) => body.paths[path]?.[method]?.['x-scope']
		t.equal(scopeOf('post', '/v1/agents'), 'agents:write')
		t.equal(scopeOf('delete', '/v1/auth/tokens/{id}'), 'tokens:admin')
		t.equal(scopeOf('get', '/v1/shop/{item}/{rest}'), '*')
		t.equal(scopeOf('get', '/healthz'), undefined)
		for (const { method, path, operation } of operations) {
			const scopes = [operation['x-scope'] ?? []].flat()
			t.strictSame(
				operation.security,
				scopes.map((scope) => ({ bearer: [scope] })),
				`${method} ${path}`,
			)
			for (const scope of scopes) t.ok(operation.description.includes(`\`${scope}\``))
			t.equal('401' in operation.responses, scopes.length > 0 || path === '/v1/hooks/{token}')
		}
	})

	await t.test('resolves every $ref', async (t) => {
		const refs = [...JSON.stringify(body).matchAll(/"\$ref":"([^"]+)"/g)].map((match) => match[1] ?? '')
		t.ok(refs.length > 100)
		for (const ref of new Set(refs)) t.ok(resolve(body, { $ref: ref }), ref)
	})

	await t.test('lists the responses of each operation, with descriptions', async (t) => {
		for (const { method, path, operation } of operations) {
			const about = `${method} ${path}`
			t.ok(
				Object.keys(operation.responses).some((status) => /^(2\d\d|101)$/.test(status)),
				about,
			)
			t.ok(operation.responses.default, about)
			for (const { $ref, description } of Object.values(operation.responses)) t.ok($ref ?? description, about)
		}
		const { responses } = body.paths['/v1/agents']?.post ?? {}
		const statuses = Object.keys(responses ?? {}).join(' ')
		t.equal(statuses, '201 400 401 403 409 413 415 429 503 507 default')
		t.strictSame(Object.keys(body.paths['/v1/agents/{name}']?.delete?.responses ?? {}).slice(0, 1), ['204'])
		t.ok(body.paths['/healthz']?.get?.responses['200']?.content?.['text/plain'])
	})

	await t.test('describes requests and responses as they are', async (t) => {
		const sent: [method: string, path: string, body: unknown, url?: string][] = [
			['post', '/v1/agents', { name: 'ada', persona: null, config: { model: 'm', mine: [1] } }],
			['post', '/v1/agents', { name: 'bob', config: { temperature: 3 } }],
			['post', '/v1/agents', { name: '-' }],
			['post', '/v1/agents', { name: 'eve', extra: 1 }],
			['get', '/v1/agents', undefined],
			['get', '/v1/agents/{name}', undefined, '/v1/agents/ada'],
			['patch', '/v1/agents/{name}', { config: { model: null } }, '/v1/agents/ada'],
			['get', '/v1/agents/{name}', undefined, '/v1/agents/nobody'],
			['post', '/v1/agents/{name}/stop', {}, '/v1/agents/ada/stop'],
			['post', '/v1/agents/{name}/runs', { prompt: 'hello' }, '/v1/agents/ada/runs'],
			['get', '/v1/agents/{name}/runs', undefined, '/v1/agents/ada/runs'],
			['post', '/v1/agents/{name}/runs', { prompt: '' }, '/v1/agents/ada/runs'],
			['post', '/v1/auth/tokens', { scopes: ['*'], ttl: '2099-01-01T00:00:00Z' }],
			['post', '/v1/auth/tokens', { scopes: ['*', '*'] }],
			['post', '/v1/auth/tokens', { scopes: [] }],
			['get', '/v1/auth/tokens', undefined],
			['get', '/v1/audit', undefined],
			['get', '/v1/plugins', undefined],
			['get', '/v1/health', undefined],
		]
		for (const [method, path, payload, url = path] of sent) {
			const operation = body.paths[path]?.[method]
			const about = `${method} ${path} ${JSON.stringify(payload)}`
			const reply = await gateway.request(method.toUpperCase(), url, payload === undefined ? {} : { body: payload })
			if (payload !== undefined) {
				const schema = operation?.requestBody?.content['application/json']?.schema ?? {}
				t.equal(check(schema, payload) === '', reply.status < 400, `${about} is accepted or rejected as described`)
			}
			const declared = operation?.responses[reply.status]
			t.ok(declared, `${about} returns ${reply.status}, which is described`)
			const schema = declared && resolve(body, declared).content?.['application/json']?.schema
			t.equal(schema ? check(schema, reply.body) : 'undescribed', '', about)
		}
	})

	await t.test('omits the routes of a plugin that is switched off', async (t) => {
		const stream = await openStream(gateway.url)
		t.teardown(() => stream.close())
		const reloaded = stream.waitFor('config.reloaded')
		writeFileSync(join(gateway.home, 'config/gateway.yaml'), 'plugins: {shop: false}\n')
		await reloaded
		const { paths } = (await gateway.request<Described>('GET', '/v1/openapi.json')).body
		t.notOk('/v1/shop' in paths)
		t.equal(Object.keys(paths).length, Object.keys(body.paths).length - 3)
	})
})

void t.test(
	'the document needs no token, is the same in YAML, and has no second server without the chat API',
	async (t) => {
		const gateway = await startGateway({ config: 'plugins: {legacy-chat: false}\n', env: { SVC_LOOPBACK: 'off' } })
		t.teardown(() => gateway.stop())
		const json = await gateway.request<Described>('GET', '/v1/openapi.json')
		t.equal(json.status, 200)
		const yaml = await gateway.request<string>('GET', '/v1/openapi.yaml')
		t.match(yaml.headers.get('content-type'), /^application\/yaml/)
		t.strictSame(parse(yaml.body), json.body)
		t.equal(gateway.running.gateway.status.url('legacy'), null)
		t.strictSame(
			operationsOf(json.body).filter(({ server }) => server),
			[],
		)
	},
)
