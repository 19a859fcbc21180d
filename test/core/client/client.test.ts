/** The client library against servers that behave like a gateway or a proxy. */
import { createServer } from 'node:http'
import type { IncomingMessage, RequestListener } from 'node:http'
import t from 'tap'
import type { Test } from 'tap'
import { listenOnLoopback } from '../../support/loopback.ts'

/** Imported by URL, since its types need generated files. */
const { createGateway } = await import(new URL('../../../core/client/index.ts', import.meta.url).href)

const frame = (id: number, event_type: string): string => `id: ${id}\ndata: ${JSON.stringify({ event_type })}\n\n`
const begun = { 'content-type': 'text/event-stream', 'x-svc-run-id': 'r1' }

async function serve(t: Test, answer: RequestListener): Promise<{ url: string; requests: IncomingMessage[] }> {
	const requests: IncomingMessage[] = []
	const server = createServer((request, response) => {
		requests.push(request)
		answer(request, response)
	})
	const { url, stop } = await listenOnLoopback(server)
	t.teardown(stop)
	return { url, requests }
}

async function typesOf(events: AsyncIterable<{ event_type: string }>): Promise<string[]> {
	return (await Array.fromAsync(events)).map(({ event_type }) => event_type)
}

void t.test('the token is sent only to the address of the gateway', async (t) => {
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

void t.test('a malformed token is refused and not shown', (t) => {
	const token = 'svc_first\nsvc_second'
	t.throws(() => createGateway({ url: 'http://127.0.0.1:1', token }), { message: /^(?!.*svc_).*token/s })
	t.end()
})

void t.test('attempts are at intervals, even with an invalid Retry-After', async (t) => {
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
		// Without the interval, the next attempt would arrive within a millisecond.
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

void t.test('an undefined filter is ignored', async (t) => {
	const { url, requests } = await serve(t, (_, response) => void response.writeHead(200, begun).end(frame(1, 'any')))
	for await (const { position } of createGateway({ url }).events({ agent_id: 'ada', run_id: undefined })) {
		t.equal(position, '1')
		break
	}
	t.equal(requests[0]?.url, '/v1/events/stream?agent_id=ada')
})
