/** The OpenAPI document is valid, complete and correct. */
import { Validator } from '@seriousme/openapi-schema-validator'
import t from 'tap'
import { withAllRoutes } from '../../docs/make/openapi.ts'
import { addToken } from '../support/add.ts'
import { send, startGateway } from '../support/gateway.ts'
import type { RequestOptions } from '../support/gateway.ts'
import { checkerOf, operationsOf, resolve, urlOf } from '../support/openapi.ts'
import type { Described, Media } from '../support/openapi.ts'

void t.test('the OpenAPI document of all built-in plugins', async (t) => {
	const gateway = await startGateway({ config: withAllRoutes })
	t.teardown(() => gateway.stop())
	const document = (await gateway.request<Described>('GET', '/v1/openapi.json')).body
	const operations = operationsOf(document)
	const check = checkerOf(document.components.schemas)

	await t.test('is valid according to a third-party validator', async (t) => {
		const { valid, errors } = await new Validator().validate(structuredClone(document) as never)
		t.equal(valid, true, JSON.stringify(errors))
	})

	await t.test('has an example of every request and response body that matches its schema', (t) => {
		let checked = 0
		const checkExample = (media: Media, where: string): void => {
			t.not(media.example, undefined, `${where} has an example`)
			t.equal(check(media.schema, media.example), '', where)
			checked++
		}
		for (const { operation } of operations) {
			const { operationId: id, requestBody, responses, parameters = [] } = operation
			for (const [type, media] of Object.entries(requestBody?.content ?? {}))
				checkExample(media, `${id}: body, ${type}`)
			for (const parameter of parameters) {
				if (parameter.required || parameter.example !== undefined) checkExample(parameter, `${id}: ${parameter.name}`)
				else check(parameter.schema, null)
				t.ok(parameter.description, `${id}: ${parameter.name} is described`)
			}
			for (const [status, reply] of Object.entries(responses)) {
				// All other errors, which differ in their `code`.
				if (status === 'default') continue
				for (const [type, media] of Object.entries(resolve(document, reply).content ?? {}))
					checkExample(media, `${id}: ${status}, ${type}`)
			}
		}
		for (const [name, schema] of Object.entries(document.components.schemas))
			for (const example of schema.examples ?? []) t.equal(check(schema, example), '', name)
		t.ok(checked > 500, `${checked} examples`)
		t.end()
	})

	await t.test('describes every tag, and has unique operation ids', (t) => {
		for (const { name, description = '' } of document.tags) t.match(description, /^(?!Routes of the plugin).+\.$/, name)
		const ids = operations.map(({ operation }) => operation.operationId)
		t.strictSame(new Set(ids).size, ids.length)
		t.end()
	})

	await t.test('has the chat API with its own address', (t) => {
		const chat = operations.filter(({ path }) => path.startsWith('/api/'))
		t.equal(chat.length, 6)
		for (const { server, operation } of chat) {
			t.equal(server && urlOf(server), gateway.running.gateway.status.url('legacy'))
			const missing = resolve(document, operation.responses['404'] ?? {})
			t.match(missing.content?.['application/json'], {
				schema: { $ref: '#/components/schemas/ChatError' },
				example: { success: false, error: String },
			})
		}
		const socket = operations.find(({ path }) => path.endsWith('/chat/ws'))?.operation
		t.equal(resolve(document, socket?.responses['101'] ?? {}).description, 'Switching Protocols')
		for (const { path, server } of operations) if (!path.startsWith('/api/')) t.equal(server, undefined, path)
		t.end()
	})

	await t.test('describes errors as they are', async (t) => {
		const legacy = gateway.running.gateway.status.url('legacy') ?? ''
		await gateway.request('POST', '/v1/agents', { body: { name: 'ada' } })
		const { token } = await addToken(gateway, ['agents:read'])
		const foreign = { headers: { origin: 'http://evil.example' } }
		const text = { body: 'hello', headers: { 'content-type': 'text/plain' } }
		const cases: [id: string, status: number, url: string, method: string, path: string, options?: RequestOptions][] = [
			['createAgent', 400, gateway.url, 'POST', '/v1/agents', { body: { name: '-' } }],
			['createAgent', 401, gateway.url, 'POST', '/v1/agents', { ...foreign, body: {} }],
			['createAgent', 403, gateway.url, 'POST', '/v1/agents', { token, body: {} }],
			['createAgent', 409, gateway.url, 'POST', '/v1/agents', { body: { name: 'ada' } }],
			['createAgent', 413, gateway.url, 'POST', '/v1/agents', { body: { name: 'x'.repeat(2 ** 20) } }],
			['createAgent', 415, gateway.url, 'POST', '/v1/agents', text],
			['getAgent', 404, gateway.url, 'GET', '/v1/agents/nobody'],
			['getDocsFile', 404, gateway.url, 'GET', '/docs/nothing'],
			['chat', 400, legacy, 'POST', '/api/agents/ada/chat', { body: {} }],
			['chat', 401, legacy, 'POST', '/api/agents/ada/chat', { ...foreign, body: {} }],
			['chat', 404, legacy, 'POST', '/api/agents/nobody/chat', { body: { message: 'hello' } }],
			['chat', 415, legacy, 'POST', '/api/agents/ada/chat', text],
			['openChatSocket', 400, legacy, 'GET', '/api/agents/ada/chat/ws'],
			['createChatCompletion', 400, gateway.url, 'POST', '/v1/chat/completions', { body: {} }],
		]
		for (const [id, status, url, method, path, options] of cases) {
			const reply = await send(url + path, method, options)
			t.equal(reply.status, status, `${id} ${status}: ${JSON.stringify(reply.body)}`)
			const declared = operations.find(({ operation }) => operation.operationId === id)?.operation.responses[status]
			const { content, headers = {} } = resolve(document, declared ?? {})
			const media = content?.['application/json']
			t.equal(media ? check(media.schema, reply.body) : 'undescribed', '', `${id} ${status}`)
			if (status === 401 || status === 403) t.ok(headers['WWW-Authenticate'] && reply.headers.get('www-authenticate'))
		}
	})

	await t.test('avoids what common validators do not accept', (t) => {
		const text = JSON.stringify(document)
		for (const name of Object.keys(document.components.responses ?? {}))
			t.ok(text.includes(`"#/components/responses/${name}"`), `the response ${name} is used`)
		visit(document, (node, path) => {
			if ([node.type].flat().includes('array')) t.ok(node.items, `${path} declares its items`)
			// Not every validator compiles patterns with the flag u.
			if (typeof node.pattern === 'string') t.notMatch(node.pattern, /\\p\{/, path)
		})
		t.end()
	})
})

function visit(node: unknown, look: (node: Record<string, unknown>, path: string) => void, path = ''): void {
	if (typeof node !== 'object' || node === null) return
	if (!Array.isArray(node)) look(node as Record<string, unknown>, path)
	for (const [key, value] of Object.entries(node)) visit(value, look, `${path}/${key}`)
}
