/** HTTP requests to model servers, which work the same for every dialect. */
import { createServer } from 'node:http'
import { connect } from 'node:net'
import { brotliCompressSync, gzipSync } from 'node:zlib'
import t from 'tap'
import { RunPool } from '../../core/runs/run-pool.ts'
import type { ModelOrder } from '../../sandbox/order.ts'
import type { ProviderKind } from '../../sandbox/provider-kinds.ts'
import { openProvider } from '../../sandbox/models/open.ts'
import type { ModelReply } from '../../sandbox/models/provider.ts'
import { listenOnLoopback } from '../support/loopback.ts'
import { startRawServer, startStream } from '../support/raw-server.ts'
import { runHost } from '../support/run-host.ts'

const event = (value: object): string => `data: ${JSON.stringify(value)}\n\n`
const chat = [
	event({ choices: [{ delta: { content: 'Yes.' } }] }),
	event({ choices: [{ delta: {}, finish_reason: 'stop' }] }),
	'data: [DONE]\n\n',
].join('')
const answers: Record<Exclude<ProviderKind, 'offline'>, { path: string; stream: string; key: [string, string] }> = {
	openai: { path: '/v1/chat/completions', stream: chat, key: ['authorization', 'Bearer k-1'] },
	'openai-responses': {
		path: '/v1/responses',
		key: ['authorization', 'Bearer k-1'],
		stream:
			event({ type: 'response.output_text.delta', output_index: 0, delta: 'Yes.' }) +
			event({
				type: 'response.completed',
				response: {
					status: 'completed',
					output: [{ type: 'message', content: [{ type: 'output_text', text: 'Yes.' }] }],
				},
			}),
	},
	anthropic: {
		path: '/v1/messages',
		key: ['x-api-key', 'k-1'],
		stream:
			event({ type: 'message_start', message: { usage: { input_tokens: 1 } } }) +
			event({ type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } }) +
			event({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Yes.' } }) +
			event({ type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 1 } }),
	},
	ollama: {
		path: '/v1/chat',
		key: ['authorization', 'Bearer k-1'],
		stream: event({ message: { content: 'Yes.' }, done: false }) + event({ done: true, done_reason: 'stop' }),
	},
	google: {
		path: '/v1/models/m:streamGenerateContent',
		key: ['x-goog-api-key', 'k-1'],
		stream: event({ candidates: [{ content: { parts: [{ text: 'Yes.' }] }, finishReason: 'STOP' }] }),
	},
}

for (const [kind, { path, stream, key }] of Object.entries(answers)) {
	void t.test(`${kind}: address, key, headers and query`, async (t) => {
		const { url, requests } = await startRawServer(t, (response) => startStream(response).end(stream))
		const headers = { 'X-Own': 'mine', 'User-Agent': 'other' }
		const order = {
			kind: kind as ProviderKind,
			base_url: `${url}/`,
			api_key: 'k-1',
			headers,
			query: { version: '7 8' },
		}
		t.match(await ask(order), { status: 'answered', answer: { content: 'Yes.' } })
		const [request] = requests
		const { pathname, searchParams } = new URL(request?.url ?? '', url)
		t.equal(pathname, path)
		t.equal(searchParams.get('version'), '7 8')
		t.match(request?.headers, { [key[0]]: key[1], 'x-own': 'mine', 'user-agent': 'other' })
		t.match(await ask({ kind: kind as ProviderKind, base_url: url }), { status: 'answered' })
		t.equal(requests[1]?.headers[key[0]], undefined, 'a server that needs no key gets none')
	})

	void t.test(`${kind}: a redirect is not followed, and errors keep their message and retry delay`, async (t) => {
		const { url, requests } = await startRawServer(t, (response) => {
			if (requests.length === 1) return response.writeHead(307, { location: '/elsewhere' }).end()
			if (requests.length === 2)
				return response.writeHead(429, { 'retry-after': '2' }).end('{"error":{"message":"slow down"}}')
			return response.writeHead(502, { 'content-type': 'text/html' }).end('<html>Bad Gateway</html>')
		})
		const order = { kind: kind as ProviderKind, base_url: url }
		t.match(await ask(order), { failure: { code: 'model_rejected', message: /redirect \(307\) to \/elsewhere/ } })
		t.equal(requests.length, 1)
		t.match(await ask(order), {
			failure: { code: 'model_rate_limited', status: 429, retryAfterMs: 2_000, message: '429 slow down' },
		})
		t.match(await ask(order), { failure: { code: 'model_unavailable', message: '502 <html>Bad Gateway</html>' } })
	})
}

void t.test('a connection is reused after the last event, although the response ends later', async (t) => {
	const sockets = new Set<unknown>()
	const { url } = await startRawServer(t, (response, request) => {
		sockets.add(request.socket)
		startStream(response).write(chat, () => setImmediate(() => response.end(': bye\n\n')))
	})
	let calls = 0
	do t.match(await ask({ base_url: url }), { status: 'answered' })
	while (++calls < 50 && sockets.size === calls)
	t.ok(sockets.size < calls)
})

void t.test('a response that does not end after its last event is closed', async (t) => {
	const closed = Promise.withResolvers<void>()
	const { url } = await startRawServer(t, (response) => {
		response.on('close', closed.resolve)
		startStream(response).write(chat)
	})
	t.match(await ask({ base_url: url }), { status: 'answered', answer: { content: 'Yes.' } })
	await closed.promise
})

void t.test('compressed responses are decompressed', async (t) => {
	const { url } = await startRawServer(t, (response, request) => {
		t.equal(request.headers['accept-encoding'], 'identity')
		const pack = request.url?.includes('br=') ? brotliCompressSync : gzipSync
		const type = { 'content-type': 'text/event-stream', 'content-encoding': pack === gzipSync ? 'gzip' : 'br' }
		response.writeHead(200, type).end(pack(chat))
	})
	t.match(await ask({ base_url: url }), { status: 'answered', answer: { content: 'Yes.' } })
	t.match(await ask({ base_url: url, query: { br: '1' } }), { status: 'answered', answer: { content: 'Yes.' } })
})

void t.test('a compressed response ends at the limit of decompressed bytes', async (t) => {
	const bomb = gzipSync(Buffer.alloc(80 * 1024 * 1024))
	const { url } = await startRawServer(t, (response) =>
		response.writeHead(200, { 'content-type': 'application/json', 'content-encoding': 'gzip' }).end(bomb),
	)
	t.match(await ask({ base_url: url }), { failure: { code: 'model_malformed', retryable: false, message: /bytes/ } })
})

void t.test('a compressed response that expands to nothing ends at the limit of compressed bytes', async (t) => {
	const head = Buffer.from('1f8b0800000000000003', 'hex')
	const emptyBlocks = Buffer.alloc(70 * 1024 * 1024, Buffer.from('000000ffff', 'hex'))
	const model = await startRawServer(t, (response) =>
		response
			.writeHead(200, { 'content-type': 'application/json', 'content-encoding': 'gzip' })
			.end(Buffer.concat([head, emptyBlocks])),
	)
	t.match(await ask({ base_url: model.url }), {
		failure: { code: 'model_malformed', message: /more than 67108864 bytes/ },
	})
})

void t.test('single blanks before a stream are read in linear time', async (t) => {
	const blank = '1\r\n \r\n'.repeat(300_000)
	const body = `${blank}${chat.length.toString(16)}\r\n${chat}\r\n0\r\n\r\n`
	const model = await startRawServer(t, (_response, { socket }) =>
		socket.end(`HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n${body}`),
	)
	t.match(await ask({ base_url: model.url }), { status: 'answered', answer: { content: 'Yes.' } })
})

void t.test('a request that cannot be sent is rejected without repeating secrets', async (t) => {
	const { url, requests } = await startRawServer(t, (response) => response.end())
	for (const order of [
		{ base_url: url, api_key: 'se\ncret-1' },
		{ base_url: url, headers: { 'x-token': 'se\ncret-1' } },
		{ base_url: url.replace('//', '//user:se-cret-1@') },
		{ base_url: 'ftp://127.0.0.1/v1' },
	]) {
		const reply = await ask(order)
		t.match(reply, { status: 'failed', failure: { code: 'model_rejected', retryable: false } })
		t.notMatch(JSON.stringify(reply), /cret-1/)
	}
	t.equal(requests.length, 0)
})

void t.test('a worker thread uses the proxy of the environment', async (t) => {
	const model = await startRawServer(t, (response) => startStream(response).end(chat))
	const proxied: string[] = []
	const proxy = createServer((request, response) => {
		proxied.push(request.url ?? '')
		startStream(response).end(chat)
	})
	proxy.on('connect', (request, socket) => {
		proxied.push(request.url ?? '')
		const through = connect(Number(new URL(model.url).port), '127.0.0.1', () => {
			socket.write('HTTP/1.1 200 OK\r\n\r\n')
			socket.pipe(through).pipe(socket)
		})
		through.on('error', () => socket.destroy())
		socket.on('error', () => through.destroy())
	})
	const { url, stop } = await listenOnLoopback(proxy)
	t.teardown(stop)
	const names = { NODE_USE_ENV_PROXY: '1', HTTP_PROXY: url, NO_PROXY: '' }
	const before = { ...process.env }
	Object.assign(process.env, names)
	t.teardown(() => {
		for (const name of Object.keys(names)) {
			if (before[name] === undefined) delete process.env[name]
			else process.env[name] = before[name]
		}
	})
	const worker = new URL('../../sandbox/worker.ts', import.meta.url)
	const pool = new RunPool({ worker, threads: 1, runs_per_thread: 4 })
	t.teardown(() => pool[Symbol.asyncDispose]())
	const models: ModelOrder[] = [
		{ provider: 'p', kind: 'openai', model: 'm', base_url: 'http://model.invalid/v1', timeout_ms: 20_000 },
	]
	const { outcome } = pool.execute(
		{
			run_id: 'r1',
			agent_id: 'a',
			models,
			system: null,
			history: [],
			prompt: 'Is it?',
			tools: [],
			journal: [],
			limits: { steps: 5, tokens: 1_000, wall_time_s: 60 },
			remaining_ms: 60_000,
		},
		runHost,
	)
	t.match(await outcome, { status: 'completed', answer: { content: 'Yes.' } })
	t.match(proxied[0], 'model.invalid')
})

async function ask(change: Partial<ModelOrder>): Promise<ModelReply> {
	const order: ModelOrder = { provider: 'p', kind: 'openai', model: 'm', timeout_ms: 20_000, ...change }
	const request = { system: null, turns: [{ role: 'user' as const, content: 'Is it?' }], tools: [] }
	const io = { signal: new AbortController().signal, onText: () => {} }
	return (await openProvider(order.kind)).ask(order, request, io)
}
