/** Calls every operation of the OpenAPI document with its own example. */
import t from 'tap'
import type { Test } from 'tap'
import { WebSocket } from 'ws'
import { withAllRoutes } from '../../docs/make/openapi.ts'
import { consoleClient, startProtectedServer } from '../support/oauth.ts'
import { startGateway } from '../support/gateway.ts'
import type { TestGateway } from '../support/gateway.ts'
import { isOnCluster } from '../support/nats.ts'
import { checkerOf, operationsOf, resolve, urlOf } from '../support/openapi.ts'
import type { Described, Entry } from '../support/openapi.ts'
import { inOrder, steps } from '../support/openapi-steps.ts'
import type { Made, Step } from '../support/openapi-steps.ts'

const CALLBACK = 'https://gateway.example.com/v1/auth/callback'
const { issuer } = await startProtectedServer(t, { configuration: { clients: [consoleClient(CALLBACK)] } })

const config = `${withAllRoutes}server: {public_url: 'https://gateway.example.com'}
auth: {oidc: {issuer: '${issuer}', client_id: console, client_secret: secret, rules: [{when: {sub: grace}, scopes: ['*']}]}}
`

/** They copy the data folder, which a gateway on a cluster does not have. */
const notOnCluster = new Set(['createBackup', 'removeBackup'])

void t.test('every operation answers its own example as described', async (t) => {
	const gateway = await startGateway({ config })
	t.teardown(() => gateway.stop())
	const document = (await gateway.request<Described>('GET', '/v1/openapi.json')).body
	const check = checkerOf(document.components.schemas)
	const made: Made = new Map()
	const operations = inOrder(operationsOf(document))
	t.ok(operations.length > 80)
	for (const entry of operations) {
		const { operation } = entry
		const skip = isOnCluster && notOnCluster.has(operation.operationId) && 'there are no backups of a cluster'
		await t.test(`${operation.operationId}: ${entry.method.toUpperCase()} ${entry.path}`, { skip }, async (t) => {
			const example = operation.requestBody?.content['application/json']?.example
			const step = (await steps[operation.operationId]?.({ gateway, made, body: example })) ?? {}
			const request = requestOf(t, gateway, entry, { ...(example !== undefined && { body: example }), ...step })
			if ('101' in operation.responses) return exchangeFrames(t, request)
			const reply = await exchange(request, step)
			const declared = resolve(document, operation.responses[reply.status] ?? {})
			const received = `${reply.status} ${reply.text.slice(0, 2_000)}`
			t.ok(reply.status < 300, `if it needs something first, add a step to test/support/openapi-steps.ts: ${received}`)
			t.ok(
				declared.description,
				`the route declares this status in response.status, or without a body in plugins: { openapi: { answers: { ${reply.status}: {} } } }: ${received}`,
			)
			t.ok(reply.headers.get('x-request-id'), 'the response has a request id')
			if (!declared.content) return void t.equal(reply.text, '', 'the response has no body, as described')
			const media = declared.content[reply.type]
			if (!media) return void t.fail(`the type ${reply.type} is not described`)
			t.not(media.example, undefined, 'the response has an example')
			const value: unknown = reply.type.includes('json') ? JSON.parse(reply.text) : reply.text
			if (!step.quiet) t.equal(check(media.schema, value), '', `the response matches its schema: ${received}`)
			if (reply.type.includes('json')) made.set(operation.operationId, value)
		})
	}
	for (const id of Object.keys(steps))
		t.ok(
			operations.some(({ operation }) => operation.operationId === id),
			`${id} is an operation`,
		)
})

interface ExampleRequest {
	url: string
	method: string
	headers: Record<string, string>
	body?: string
}

/** Builds the request of an example. Fails if a required part has no example. */
function requestOf(
	t: Test,
	gateway: TestGateway,
	{ method, path, operation, server }: Entry,
	step: Step,
): ExampleRequest {
	const { params = {}, query = {}, headers = {} } = step
	const values = { path: { ...params }, query: { ...query }, header: { ...headers } }
	for (const { name, in: where, required, example } of operation.parameters ?? []) {
		if (example !== undefined) values[where][name] ??= String(example)
		if (required) t.ok(name in values[where], `${name} has an example`)
	}
	if (operation.requestBody) t.ok('body' in step, 'the body has an example')
	const url = new URL(
		path.replaceAll(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(values.path[name] ?? '')),
		server ? urlOf(server) : gateway.url,
	)
	for (const [name, value] of Object.entries(values.query)) url.searchParams.set(name, value)
	const [type] = Object.keys(operation.requestBody?.content ?? {})
	const isJson = type === 'application/json'
	return {
		url: url.href,
		method: method.toUpperCase(),
		headers: { ...values.header, ...(type && { 'content-type': type }) },
		...(type && { body: isJson ? JSON.stringify(step.body) : String(step.body) }),
	}
}

interface ExampleResponse {
	status: number
	headers: Headers
	type: string
	text: string
}

/** Returns the complete response. Of a stream, which may never end, it reads up to the first data. */
async function exchange({ url, ...request }: ExampleRequest, { meanwhile, quiet }: Step): Promise<ExampleResponse> {
	const controller = new AbortController()
	const { status, headers, body } = await fetch(url, { ...request, signal: controller.signal })
	const [type = ''] = (headers.get('content-type') ?? '').split(';')
	await meanwhile?.()
	if (quiet) return (controller.abort(), { status, headers, type, text: '' })
	let text = ''
	for await (const piece of body?.pipeThrough(new TextDecoderStream()) ?? []) {
		text += piece
		if (type === 'text/event-stream' && /^data: .*\n(?:id: .*\n)?\n/m.test(text)) break
	}
	controller.abort()
	return { status, headers, type, text }
}

/** The document describes the frames of a WebSocket only in words: a message is answered with a reply that ends with `done`. */
async function exchangeFrames(t: Test, { url, headers }: ExampleRequest): Promise<void> {
	const socket = new WebSocket(url.replace('http:', 'ws:'), { headers })
	const frames: { type: string; content: string }[] = []
	const { promise, resolve: done, reject } = Promise.withResolvers<void>()
	socket.on('error', reject)
	socket.on('open', () => socket.send(JSON.stringify({ message: 'Which books are due today?' })))
	socket.on('message', (data) => {
		const frame = JSON.parse(String(data)) as (typeof frames)[number]
		if (frames.push(frame) && ['done', 'error'].includes(frame.type)) done()
	})
	await promise
	socket.close()
	t.match(frames.at(-1), { type: 'done', content: /books/ })
}
