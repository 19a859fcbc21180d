/** Every operation that the API describes, tried with its own example on a gateway that runs. */
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

/** They copy the data of a folder. */
const ofFolders = new Set(['createBackup', 'removeBackup'])

void t.test('every operation does with its example what it says', async (t) => {
	const gateway = await startGateway({ config })
	t.teardown(() => gateway.stop())
	const document = (await gateway.request<Described>('GET', '/v1/openapi.json')).body
	const check = checkerOf(document.components.schemas)
	const made: Made = new Map()
	const operations = inOrder(operationsOf(document))
	t.ok(operations.length > 80)
	for (const entry of operations) {
		const { operation } = entry
		const skip = isOnCluster && ofFolders.has(operation.operationId) && 'there are no backups of a cluster'
		await t.test(`${operation.operationId}: ${entry.method.toUpperCase()} ${entry.path}`, { skip }, async (t) => {
			const example = operation.requestBody?.content['application/json']?.example
			const step = (await steps[operation.operationId]?.({ gateway, made, body: example })) ?? {}
			const request = requestOf(t, gateway, entry, { ...(example !== undefined && { body: example }), ...step })
			if ('101' in operation.responses) return talk(t, request)
			const reply = await exchange(request, step)
			const declared = resolve(document, operation.responses[reply.status] ?? {})
			const told = `${reply.status} ${reply.text.slice(0, 2_000)}`
			t.ok(reply.status < 300, `if it needs something first, add a step to test/support/openapi-steps.ts: ${told}`)
			t.ok(
				declared.description,
				`its route declares the answer, in response.status, or without a body by plugins: { openapi: { answers: { ${reply.status}: {} } } }: ${told}`,
			)
			t.ok(reply.headers.get('x-request-id'), 'it has the id of the request')
			if (!declared.content) return void t.equal(reply.text, '', 'it has no body, as described')
			const media = declared.content[reply.type]
			if (!media) return void t.fail(`the type ${reply.type} is not described`)
			t.not(media.example, undefined, 'there is an example of the answer')
			const value: unknown = reply.type.includes('json') ? JSON.parse(reply.text) : reply.text
			if (!step.quiet) t.equal(check(media.schema, value), '', `it fits what is described: ${told}`)
			if (reply.type.includes('json')) made.set(operation.operationId, value)
		})
	}
	for (const id of Object.keys(steps))
		t.ok(
			operations.some(({ operation }) => operation.operationId === id),
			`${id} is an operation`,
		)
})

interface Asked {
	url: string
	method: string
	headers: Record<string, string>
	body?: string
}

/** The request that the example stands for. Fails where something that must be there has none. */
function requestOf(t: Test, gateway: TestGateway, { method, path, operation, server }: Entry, step: Step): Asked {
	const { params = {}, query = {}, headers = {} } = step
	const given = { path: { ...params }, query: { ...query }, header: { ...headers } }
	for (const { name, in: where, required, example } of operation.parameters ?? []) {
		if (example !== undefined) given[where][name] ??= String(example)
		if (required) t.ok(name in given[where], `${name} has an example`)
	}
	if (operation.requestBody) t.ok('body' in step, 'the body has an example')
	const url = new URL(
		path.replaceAll(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(given.path[name] ?? '')),
		server ? urlOf(server) : gateway.url,
	)
	for (const [name, value] of Object.entries(given.query)) url.searchParams.set(name, value)
	const [type] = Object.keys(operation.requestBody?.content ?? {})
	const isJson = type === 'application/json'
	return {
		url: url.href,
		method: method.toUpperCase(),
		headers: { ...given.header, ...(type && { 'content-type': type }) },
		...(type && { body: isJson ? JSON.stringify(step.body) : String(step.body) }),
	}
}

interface Heard {
	status: number
	headers: Headers
	type: string
	text: string
}

/** The whole answer; of a stream what comes up to its first data, since it may never end. */
async function exchange({ url, ...request }: Asked, { meanwhile, quiet }: Step): Promise<Heard> {
	const left = new AbortController()
	const { status, headers, body } = await fetch(url, { ...request, signal: left.signal })
	const [type = ''] = (headers.get('content-type') ?? '').split(';')
	await meanwhile?.()
	if (quiet) return (left.abort(), { status, headers, type, text: '' })
	let text = ''
	for await (const piece of body?.pipeThrough(new TextDecoderStream()) ?? []) {
		text += piece
		if (type === 'text/event-stream' && /^data: .*\n(?:id: .*\n)?\n/m.test(text)) break
	}
	left.abort()
	return { status, headers, type, text }
}

/** A WebSocket says of itself only in words what goes over it: a message, and a reply that ends with `done`. */
async function talk(t: Test, { url, headers }: Asked): Promise<void> {
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
