/** The client library against servers that answer as gateways do, or as what stands in front of one. */
import { createServer } from 'node:http'
import type { IncomingMessage, RequestListener } from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import t from 'tap'
import type { Test } from 'tap'

/** Its types need files that are generated. */
const { createGateway } = await import(new URL('../../../core/client/index.ts', import.meta.url).href)

const frame = (id: number, event_type: string): string => `id: ${id}\ndata: ${JSON.stringify({ event_type })}\n\n`
const begun = { 'content-type': 'text/event-stream', 'x-svc-run-id': 'r1' }

async function serve(t: Test, answer: RequestListener): Promise<{ url: string; requests: IncomingMessage[] }> {
	const requests: IncomingMessage[] = []
	const server = createServer((request, response) => {
		requests.push(request)
		answer(request, response)
	}).listen(0, '127.0.0.1')
	t.teardown(() => {
		server.close()
		server.closeAllConnections()
	})
	await once(server, 'listening')
	return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, requests }
}

async function typesOf(events: AsyncIterable<{ event_type: string }>): Promise<string[]> {
	return (await Array.fromAsync(events)).map(({ event_type }) => event_type)
}

void t.test('the token goes to the address of the gateway alone', async (t) => {
	const other = await serve(t, (_, response) => void response.writeHead(404).end())
	const { url, requests } = await serve(t, ({ method }, response) => {
		if (method === 'POST')
			response
				.writeHead(200, { ...begun, location: `@${new URL(other.url).host}/` })
				.end(`retry: 1\n${frame(1, 'run.started')}`)
		else response.writeHead(200, begun).end(frame(2, 'run.completed'))
	})
	const types = await typesOf(createGateway({ url, token: 'svc_test' }).run('ada', { prompt: 'hello' }))
	t.strictSame(types, ['run.started', 'run.completed'])
	t.match(requests[1], { url: '/v1/events/stream?run_id=r1', headers: { 'last-event-id': '1' } })
	t.strictSame(other.requests, [])

	const redirecting = await serve(t, (_, response) => void response.writeHead(307, { location: other.url }).end())
	const redirected = createGateway({ url: redirecting.url, token: 'svc_test' }).run('ada', { prompt: 'hello' })
	await t.rejects(typesOf(redirected), { code: 'unexpected_answer', message: /redirects to http:\/\/127/ })
	t.equal(redirecting.requests.length, 1)
	t.strictSame(other.requests, [])
})

void t.test('a token that cannot be one is refused without showing it', (t) => {
	const token = 'svc_first\nsvc_second'
	t.throws(() => createGateway({ url: 'http://127.0.0.1:1', token }), { message: /^(?!.*svc_).*token/s })
	t.end()
})

void t.test('whatever Retry-After says, attempts come at intervals', async (t) => {
	for (const later of ['Wed, 21 Oct 2026 07:28:00 GMT', '99999999999']) {
		const { url, requests } = await serve(
			t,
			(_, response) => void response.writeHead(503, { 'retry-after': later }).end(),
		)
		const refused = Promise.withResolvers<void>()
		const stop = new AbortController()
		const options = { signal: stop.signal, onDisconnect: () => refused.resolve() }
		const reading = typesOf(createGateway({ url }).run('ada', { prompt: 'hello' }, options))
		reading.catch(() => {})
		await refused.promise
		// Its next attempt would come within a millisecond.
		await new Promise((resolve) => setTimeout(resolve, 100))
		stop.abort(new Error('enough'))
		await t.rejects(reading, { message: 'enough' })
		t.equal(requests.length, 1, later)
	}
})

void t.test('an event of more than 16 Mi characters ends the connection', async (t) => {
	const { url } = await serve(t, (_, response) => {
		response.writeHead(200, begun).end(`data: ${'x'.repeat(20 * 1024 * 1024)}`)
	})
	const events = createGateway({ url }).run('ada', { prompt: 'hello' }, { attempts: 1 })
	await t.rejects(typesOf(events), { code: 'stream_lost', cause: { message: /buffer size/ } })
})

void t.test('a filter that is undefined is none', async (t) => {
	const { url, requests } = await serve(t, (_, response) => void response.writeHead(200, begun).end(frame(1, 'any')))
	for await (const { position } of createGateway({ url }).events({ agent_id: 'ada', run_id: undefined })) {
		t.equal(position, '1')
		break
	}
	t.equal(requests[0]?.url, '/v1/events/stream?agent_id=ada')
})
