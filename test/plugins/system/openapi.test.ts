import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { JsonSchema } from '../../../plugins/system/openapi/schemas.ts'
import { startGateway } from '../../support/gateway.ts'
import { openStream } from '../../support/sse.ts'
import { fits, schemaProblems } from './json-schema.ts'

interface Operation {
	operationId: string
	summary?: string
	description: string
	tags: string[]
	parameters?: { name: string; in: string; required?: boolean; schema: JsonSchema }[]
	requestBody?: { required: boolean; content: Record<string, { schema: JsonSchema }> }
	responses: Record<string, { $ref?: string; description?: string; content?: Record<string, { schema: JsonSchema }> }>
	security: Record<string, string[]>[]
	'x-required-scope'?: string
}

interface Described {
	openapi: string
	info: { title: string; version: string }
	tags: { name: string }[]
	paths: Record<string, Record<string, Operation>>
	components: { schemas: Record<string, JsonSchema>; responses: Record<string, unknown>; securitySchemes: object }
}

const shop = `export default {
	name: 'shop',
	needs: ['auth'],
	http(server, ctx) {
		server.route({ method: 'GET', path: '/v1/shop/{item}/{rest*}', options: { description: 'Look' }, handler: () => 'in' })
		server.route({ method: '*', path: '/v1/shop', options: { auth: false }, handler: () => 'in' })
	},
}`

const needed = [
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
]

void t.test('GET /v1/openapi.json', async (t) => {
	const gateway = await startGateway({ config: 'plugins: {shop: true}\n', files: { 'plugins/shop/index.js': shop } })
	t.teardown(() => gateway.stop())
	const { status, body } = await gateway.request<Described>('GET', '/v1/openapi.json')
	t.equal(status, 200)
	const operations = operationsOf(body)
	const lookup = (ref: string): JsonSchema => resolve(body, ref) as JsonSchema

	await t.test('is OpenAPI 3.1 with every route in it, third parties included', async (t) => {
		t.match(body, { openapi: '3.1.0', info: { title: String, version: /^\d/ } })
		const found = operations.map(({ method, path }) => `${method.toUpperCase()} ${path}`)
		for (const route of needed) t.ok(found.includes(route), route)
	})

	await t.test('describes no operation that is not there', async (t) => {
		for (const { method, path, operation } of operations) {
			const headers = { 'x-forwarded-for': '192.0.2.7' }
			const url = path.replaceAll(/\{\w+\}/g, 'nothing')
			const reply = await gateway.request(method.toUpperCase(), url, { headers })
			const isOpen = operation['x-required-scope'] === undefined
			// Its own token stands in the path.
			const open = path === '/v1/hooks/{token}' ? 404 : 200
			t.equal(reply.status, isOpen ? open : 401, `${method} ${path} without a token`)
		}
	})

	await t.test('gives each operation an id of its own, a summary, tags, parameters for its path', async (t) => {
		const ids = operations.map(({ operation }) => operation.operationId)
		t.equal(new Set(ids).size, ids.length)
		for (const { method, path, operation } of operations) {
			t.match(operation.operationId, /^[a-z][A-Za-z0-9]+$/)
			if (!path.startsWith('/v1/shop')) {
				t.ok((operation.summary ?? '').length > 3, `${method} ${path} has a summary`)
				t.ok(operation.tags.length > 0, `${method} ${path} has a tag`)
			}
			for (const tag of operation.tags) t.ok(body.tags.some((one) => one.name === tag))
			const inPath = [...path.matchAll(/\{(\w+)\}/g)].map((match) => match[1] ?? '')
			const declared = (operation.parameters ?? []).filter((one) => one.in === 'path')
			t.strictSame(declared.map((one) => one.name).toSorted(), inPath.toSorted(), `${method} ${path}`)
			for (const parameter of declared) t.equal(parameter.required, true)
		}
	})

	await t.test('names scope and token where one is needed, and nowhere else', async (t) => {
		const scopeOf = (method: string, path: string) => body.paths[path]?.[method]?.['x-required-scope']
		t.equal(scopeOf('post', '/v1/agents'), 'agents:write')
		t.equal(scopeOf('delete', '/v1/auth/tokens/{id}'), 'tokens:admin')
		t.equal(scopeOf('get', '/v1/shop/{item}/{rest}'), '*')
		t.equal(scopeOf('get', '/healthz'), undefined)
		for (const { method, path, operation } of operations) {
			const scope = operation['x-required-scope']
			t.strictSame(operation.security, scope === undefined ? [] : [{ bearer: [] }], `${method} ${path}`)
			if (scope !== undefined) t.ok(operation.description.includes(`\`${scope}\``))
			t.equal('401' in operation.responses, scope !== undefined || path === '/v1/hooks/{token}')
		}
	})

	await t.test('has a good schema wherever one stands, and every $ref leads somewhere', async (t) => {
		const schemas = schemasIn(body)
		t.ok(schemas.length >= needed.length)
		for (const { at, schema } of schemas) t.strictSame(schemaProblems(schema), [], at)
		const refs = [...JSON.stringify(body).matchAll(/"\$ref":"([^"]+)"/g)].map((match) => match[1] ?? '')
		t.ok(refs.length > 100)
		for (const ref of new Set(refs)) t.ok(resolve(body, ref), ref)
	})

	await t.test('says which answers there are, each with a description', async (t) => {
		for (const { method, path, operation } of operations) {
			const about = `${method} ${path}`
			t.ok(
				Object.keys(operation.responses).some((one) => /^2\d\d$/.test(one)),
				about,
			)
			t.strictSame(operation.responses.default, { $ref: '#/components/responses/Failure' }, about)
			for (const one of Object.values(operation.responses)) t.ok(one.$ref ?? one.description, about)
		}
		const { responses } = body.paths['/v1/agents']?.post ?? {}
		t.strictSame(Object.keys(responses ?? {}), ['201', '400', '401', '403', '409', '413', '415', '429', 'default'])
		t.strictSame(Object.keys(body.paths['/v1/agents/{name}']?.delete?.responses ?? {}).slice(0, 1), ['204'])
		t.ok(body.paths['/healthz']?.get?.responses['200']?.content?.['text/plain'])
	})

	await t.test('tells the truth about bodies and answers', async (t) => {
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
				t.equal(fits(payload, schema, lookup), reply.status < 400, `${about} is taken or refused as described`)
			}
			const declared = operation?.responses[reply.status]
			t.ok(declared, `${about} answers ${reply.status}, which is described`)
			const answer = (
				declared?.$ref === undefined ? declared : resolve(body, declared.$ref)
			) as Operation['responses'][string]
			const schema = answer.content?.['application/json']?.schema
			t.ok(schema && fits(reply.body, schema, lookup), `${about} answers as described: ${JSON.stringify(reply.body)}`)
		}
	})

	await t.test('follows the routes when a plugin is switched off', async (t) => {
		const stream = await openStream(gateway.url)
		t.teardown(() => stream.close())
		const reloaded = stream.waitFor('config.reloaded')
		writeFileSync(join(gateway.home, 'config/gateway.yaml'), 'plugins: {shop: false}\n')
		await reloaded
		const now = (await gateway.request<Described>('GET', '/v1/openapi.json')).body
		t.notOk('/v1/shop' in now.paths)
		t.equal(Object.keys(now.paths).length, Object.keys(body.paths).length - 2)
	})
})

void t.test('needs no token', async (t) => {
	const gateway = await startGateway({ env: { SVC_LOOPBACK: 'off' } })
	t.teardown(() => gateway.stop())
	t.equal((await gateway.request('GET', '/v1/openapi.json')).status, 200)
})

function operationsOf({ paths }: Described): { method: string; path: string; operation: Operation }[] {
	return Object.entries(paths).flatMap(([path, methods]) =>
		Object.entries(methods).map(([method, operation]) => ({ method, path, operation })),
	)
}

/** Every schema of parameters, bodies, answers and components. */
function schemasIn(value: unknown, at = '#'): { at: string; schema: unknown }[] {
	if (typeof value !== 'object' || value === null) return []
	return Object.entries(value).flatMap(([key, inner]) => {
		const where = `${at}/${key}`
		if (key === 'schema') return [{ at: where, schema: inner }]
		if (where === '#/components/schemas') {
			return Object.entries(inner as object).map(([name, schema]) => ({ at: `${where}/${name}`, schema }))
		}
		return schemasIn(inner, where)
	})
}

function resolve(document: Described, ref: string): unknown {
	if (!ref.startsWith('#/')) return undefined
	let found: unknown = document
	for (const part of ref.slice(2).split('/')) found = (found as Record<string, unknown> | undefined)?.[part]
	return found
}
