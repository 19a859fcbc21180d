/** Owners, limits and the end of sessions, by plain HTTP and with requests that no official client sends. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { OAuthClientProvider } from '@modelcontextprotocol/sdk/client/auth.js'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js'
import t from 'tap'
import type { Test } from 'tap'
import { withoutContent } from '../../../plugins/mcp-server/messages.ts'
import { addToken } from '../../support/add.ts'
import { send, startGateway } from '../../support/gateway.ts'
import type { Answer, TestGateway } from '../../support/gateway.ts'
import { startManualModel } from '../../support/manual-model.ts'
import { providersAt } from '../../support/providers.ts'
import { eventually } from '../../support/wait.ts'
import { connect, initialize, openRaw, openStream, post } from './client.ts'

const model = await startManualModel()
t.teardown(() => model.stop())
const providers = providersAt({ held: model.url })

async function start(t: Test, settings: string): Promise<TestGateway> {
	const gateway = await startGateway({ config: configured(settings) })
	t.teardown(() => gateway.stop())
	await gateway.request('POST', '/v1/agents', { body: { name: 'ada' } })
	return gateway
}

function configured(settings: string, rest = ''): string {
	return `plugins: {mcp-server: ${settings}}\n${providers}${rest}`
}

const runAgent = (prompt: string, id = 5): object => ({
	jsonrpc: '2.0',
	id,
	method: 'tools/call',
	params: { name: 'run_agent', arguments: { agent: 'ada', prompt } },
})
const statusOfRun = async (gateway: TestGateway): Promise<string> =>
	(await gateway.request('GET', '/v1/agents/ada/runs')).body[0]?.status
/** A second more than the default of `idle_timeout_s`. */
const IDLE_TIMEOUT_MS = 1_801_000
const shared = await start(t, 'true')
const limited = await start(t, '{max_sessions: 4, max_wait_s: 1}')

void t.test('a session offers what the scopes of its token allow', async (t) => {
	const of = async (...scopes: string[]) => {
		const { token } = await addToken(shared, scopes)
		const { client, call } = await connect(t, shared, { token })
		return { call, client, tools: (await client.listTools()).tools.map(({ name }) => name) }
	}
	const reads = await of('agents:read')
	t.same(reads.tools, ['list_agents', 'search_memory', 'get_run', 'list_runs'])
	const forbidden = { isError: true, content: [{ text: /^forbidden: .* needs the scope runs:write/ }] }
	for (const args of [{ agent: 'ada', prompt: 'x' }, {}]) t.match(await reads.call('run_agent', args), forbidden)
	t.equal((await shared.request('GET', '/v1/agents/ada/runs')).body.length, 0)
	const writes = await of('runs:write')
	t.same(writes.tools, ['run_agent', 'answer_question', 'stop_run', 'stop_agent'])
	t.equal(writes.client.getServerCapabilities()?.resources, undefined)
	t.match(await writes.call('get_run', { run_id: 'x' }), { isError: true, content: [{ text: /agents:read/ }] })
	await t.rejects(writes.client.readResource({ uri: 'svc://agents/ada/history' }))
	t.equal((await of('*')).tools.length, 8)

	const { token } = await addToken(shared, ['events:read'])
	const refused = await post(shared, initialize, { token })
	t.equal(refused.status, 403)
	t.match(refused.body, { code: 'forbidden', message: /agents:read or runs:write/ })
})

void t.test('a session requires a valid token unless the caller is local and of the same origin', async (t) => {
	const from = (headers: Record<string, string>, token?: string) =>
		post(shared, initialize, { headers, ...(token !== undefined && { token }) })
	const remote = await from({ 'x-forwarded-for': '192.0.2.7' })
	t.equal(remote.status, 401)
	t.match(remote.headers.get('www-authenticate'), /^Bearer/)
	t.equal((await from({}, 'svc_wrong')).status, 401)
	t.equal((await from({ origin: 'https://evil.example' })).status, 401)
	const { token } = await addToken(shared, ['*'])
	t.equal((await from({ origin: 'https://evil.example' }, token)).status, 403, 'a page of another host')
	t.equal((await from({ origin: 'null' }, token)).status, 403)
	t.equal((await from({ origin: shared.url }, token)).status, 200)
	t.equal((await from({ origin: shared.url })).status, 200)
})

void t.test('a client that tries to sign in by OAuth shows that it needs a token', async (t) => {
	const redirectUrl = 'http://127.0.0.1:1/callback'
	const authProvider: OAuthClientProvider = {
		redirectUrl,
		clientMetadata: { redirect_uris: [redirectUrl] },
		clientInformation: () => undefined,
		saveClientInformation: () => undefined,
		tokens: () => undefined,
		saveTokens: () => undefined,
		redirectToAuthorization: () => undefined,
		codeVerifier: () => '',
		saveCodeVerifier: () => undefined,
	}
	const requestInit = { headers: { authorization: 'Bearer svc_wrong' } }
	const transport = new StreamableHTTPClientTransport(new URL(`${shared.url}/mcp`), { authProvider, requestInit })
	const client = new Client({ name: 'test', version: '1' })
	await t.rejects(client.connect(transport as Transport), { message: /no sign-in by OAuth.*valid token/ })
	const { status, body } = await shared.request('GET', '/register')
	t.equal(status, 404)
	t.notOk('error_description' in body)
})

void t.test('a client of the old transport gets an error that names the new one', async (t) => {
	const { status, body } = await send(`${shared.url}/mcp`, 'GET', { headers: { accept: 'text/event-stream' } })
	t.equal(status, 400)
	t.match(body, { message: /Streamable HTTP/ })
})

void t.test('only its owner can use a session', async (t) => {
	const { token } = await addToken(shared, ['*'])
	const other = (await addToken(shared, ['*'])).token
	const mine = await openRaw(shared, token)
	const list = { jsonrpc: '2.0', id: 1, method: 'tools/list' }
	for (const thief of [{ token: other }, {}]) {
		for (const method of ['POST', 'GET', 'DELETE']) {
			const accept = 'application/json, text/event-stream'
			const reply = await send(`${shared.url}/mcp`, method, {
				...thief,
				...(method === 'POST' && { body: list }),
				headers: { accept, 'mcp-session-id': mine.id },
			})
			t.equal(reply.status, 404, `${method} by ${'token' in thief ? 'another token' : 'a local caller'}`)
			t.match(reply.body, { code: 'not_found', message: /no such session/ })
		}
	}
	t.equal((await mine.request('tools/list')).result.tools.length, 8, 'the session continues')
	t.match(mine.id, /^[A-Za-z0-9_-]{32}$/)
})

void t.test('invalid messages are refused', async (t) => {
	const session = await openRaw(shared)
	const ping = { jsonrpc: '2.0', id: 1, method: 'ping' }
	const refusals: [what: string, status: number, body: unknown, headers?: Record<string, string>][] = [
		['a batch', 400, [ping]],
		['a large batch', 400, Array.from({ length: 10_000 }, () => ping)],
		['no JSON', 400, '{"jsonrpc": '],
		['nothing', 400, ''],
		['another version', 400, { ...ping, jsonrpc: '1.0' }],
		['a further key', 400, { ...ping, extra: 1 }],
		['deep', 400, `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":${'['.repeat(5_000)}${']'.repeat(5_000)}}}`],
		['neither request nor response', 400, { jsonrpc: '2.0' }],
		['larger than the limit', 413, { ...ping, params: { x: 'x'.repeat(1024 * 1024) } }],
		['of another type', 415, 'ping', { 'content-type': 'text/plain' }],
		['an Accept header without streams', 406, ping, { accept: 'application/json' }],
		['a second initialize', 400, initialize],
		['an unknown revision', 400, ping, { 'mcp-protocol-version': '1999-01-01' }],
		['an unknown session', 404, ping, { 'mcp-session-id': 'x' }],
	]
	for (const [what, status, body, headers] of refusals) {
		const reply = await session.post(body, headers)
		t.equal(reply.status, status, what)
		t.type(reply.body, 'object')
	}
	t.equal((await post(shared, ping)).status, 400, 'without a session')
	t.match(await session.request('nothing/of/that'), { error: { code: -32601 } })
	t.match(await session.request('tools/call', { name: 5 }), {
		error: { code: -32602, message: /the params are wrong: / },
	})
	t.match(await session.request('ping'), { result: {} }, 'the session still works')
	const head = await send(`${shared.url}/mcp`, 'HEAD', { headers: { 'mcp-session-id': session.id } })
	t.equal(head.status, 405)
})

void t.test('a message with too many values is refused before it is validated', async (t) => {
	const session = await openRaw(shared)
	const wide = Object.fromEntries(Array.from({ length: 5_000 }, (_, n) => [`a${n}`, {}]))
	const call = (params: object) => session.post({ jsonrpc: '2.0', id: 1, method: 'tools/call', params })
	for (const params of [
		{ name: 'list_agents', arguments: wide },
		{ name: 5, _meta: wide },
	])
		t.match(await call(params), { status: 400, body: { code: 'invalid_request', message: /more than 1000 values/ } })
	const token = { name: 'list_agents', _meta: { progressToken: 'x'.repeat(300) } }
	t.match(await call(token), { status: 400, body: { code: 'invalid_request', message: /progressToken/ } })
	const some = Object.fromEntries(Array.from({ length: 500 }, (_, n) => ['x'.repeat(1_000) + n, 1]))
	const { result } = await session.request('tools/call', { name: 'list_agents', arguments: some })
	t.match(result, { isError: true, content: [{ text: /^invalid_arguments: / }] })
	t.ok(result.content[0].text.length < 3_000, 'the error stays short')
})

void t.test('the log contains no content of messages', (t) => {
	const logged = withoutContent('Received a response for an unknown message ID: {"result":{"answer":"my [word]"}}')
	t.equal(logged, 'Received a response for an unknown message ID: …')
	t.equal(withoutContent('the parse failed: [{"code":"x"}]\nmore'), 'the parse failed: …')
	t.end()
})

void t.test('the data that a client stores in its session is limited', async (t) => {
	const open = (params: object) => post(shared, { ...initialize, params: { ...initialize.params, ...params } })
	const parts = Object.fromEntries(Array.from({ length: 5_000 }, (_, n) => [`a${n}`, {}]))
	t.match(await open({ capabilities: { experimental: parts } }), { status: 400, body: { code: 'invalid_request' } })
	const clientInfo = { name: 'x'.repeat(100_000), version: '1' }
	t.match(await open({ clientInfo }), { status: 413, body: { code: 'payload_too_large', message: /initialize/ } })
})

void t.test('a refused initialize request leaves no session', async (t) => {
	for (let n = 0; n < 5; n++) {
		t.equal((await post(limited, { ...initialize, params: {} })).status, 400)
		t.equal((await post(limited, initialize, { headers: { accept: 'text/html' } })).status, 406)
	}
	await openRaw(limited)
})

void t.test('a session has one stream and one request of the same id at a time', async (t) => {
	const { id } = await openRaw(shared)
	const at = { url: shared.url, id }
	const own = await openStream(at)
	t.equal(own.status, 200)
	t.equal((await openStream(at)).status, 409)
	own.leave()
	const call = await openStream(at, runAgent('first'))
	const work = await model.called('first')
	const again = await openStream(at, runAgent('second'))
	t.equal(again.status, 400)
	await again.ended
	t.match(JSON.parse(again.text()), { code: 'invalid_request', message: /5 .*already in progress/ })
	work.answer('done')
	t.equal(await call.ended, true)
	t.match(call.messages().at(-1), { id: 5, result: { content: [{ text: 'Well, done' }] } })
	t.equal((await openStream(at, runAgent('/no', 5))).status, 200, 'the id is free again')
	;(await model.called('/no')).answer('')
})

void t.test('cancelling a request ends its stream and its run', async (t) => {
	const session = await openRaw(shared)
	const call = await openStream({ url: shared.url, id: session.id }, runAgent('to be cancelled'))
	const { hungUp } = await model.called('to be cancelled')
	const params = { requestId: 5 }
	t.equal((await session.post({ jsonrpc: '2.0', method: 'notifications/cancelled', params })).status, 202)
	await hungUp
	t.equal(await call.ended, true)
	t.equal(call.messages().filter((message: Answer) => message.id === 5).length, 0, 'without a response')
	await eventually(async () => (await statusOfRun(shared)) === 'stopped')
})

void t.test('a client that loses its stream can resume it, and misses nothing', async (t) => {
	const { id } = await openRaw(shared)
	const at = { url: shared.url, id }
	const call = await openStream(at, { ...runAgent('long work'), id: 'seven' })
	const work = await model.called('long work')
	await eventually(() => call.ids().length > 0)
	const [first = ''] = call.ids()
	call.leave()
	await call.ended
	work.answer('done')
	await eventually(async () => (await statusOfRun(shared)) === 'completed')
	const resumed = await openStream(at, undefined, { 'last-event-id': first })
	t.equal(resumed.status, 200)
	await eventually(() => resumed.messages().length > 0)
	t.match(resumed.messages(), [
		{ id: 'seven', result: { structuredContent: { status: 'completed', answer: 'Well, done' } } },
	])
	t.equal(await resumed.ended, true, 'the stream ends after the result')
	for (const unknown of ['999', 'x', '../1']) {
		const refused = await openStream(at, undefined, { 'last-event-id': unknown })
		t.equal(refused.status, 400, unknown)
	}
})

void t.test('revoking a token ends its session during a call; the run continues', async (t) => {
	const { id: token_id, token } = await addToken(shared, ['*'])
	const session = await openRaw(shared, token)
	const at = { url: shared.url, id: session.id, token }
	const own = await openStream(at)
	const call = await openStream(at, runAgent('secret work'))
	const work = await model.called('secret work')
	t.equal((await shared.request('DELETE', `/v1/auth/tokens/${token_id}`)).status, 200)
	await Promise.all([own.ended, call.ended])
	t.equal(call.messages().filter((message: Answer) => message.id === 5).length, 0)
	t.equal((await session.post({ jsonrpc: '2.0', id: 9, method: 'ping' })).status, 401)
	work.answer('done')
	await eventually(async () => (await statusOfRun(shared)) === 'completed')
})

void t.test('a client that ends its session cancels nothing', async (t) => {
	const { transport, client, call } = await connect(t, shared)
	const result = call('run_agent', { agent: 'ada', prompt: 'good-bye' }).catch(() => 'gone')
	const work = await model.called('good-bye')
	const { sessionId = '' } = transport
	await transport.terminateSession()
	await client.close()
	t.equal(await result, 'gone')
	t.equal((await openStream({ url: shared.url, id: sessionId })).status, 404)
	work.answer('done')
	await eventually(async () => (await statusOfRun(shared)) === 'completed')
})

void t.test('a caller with too many sessions loses the one that was idle longest', async (t) => {
	const { token } = await addToken(limited, ['*'])
	const theirs = [await openRaw(limited, token), await openRaw(limited, token)]
	const mine = [await openRaw(limited), await openRaw(limited)]
	t.match(await mine[0]?.request('ping'), { result: {} })
	mine.push(await openRaw(limited))
	const alive = async (one: (typeof mine)[number] | undefined): Promise<boolean> =>
		(await one?.post({ jsonrpc: '2.0', id: 1, method: 'ping' }))?.status === 200
	t.same([await alive(mine[0]), await alive(mine[1]), await alive(mine[2])], [true, false, true])
	t.same([await alive(theirs[0]), await alive(theirs[1])], [true, true], 'not those of other callers')

	const streams = [mine[0], mine[2]].map((one) => openStream({ url: limited.url, id: one?.id ?? '' }))
	await Promise.all(streams)
	const refused = await post(limited, initialize)
	t.equal(refused.status, 503, 'none is idle')
	t.match(refused.headers.get('retry-after'), /^\d+$/)
	for (const stream of streams) (await stream).leave()
	await eventually(async () => (await post(limited, initialize)).status === 200)
})

void t.test('a flood of sessions stays within the limit', async (t) => {
	const replies = await Promise.all(Array.from({ length: 100 }, () => post(limited, initialize)))
	t.same(new Set(replies.map(({ status }) => status).filter((status) => status !== 200 && status !== 503)), new Set())
	const ids = replies.flatMap(({ headers }) => headers.get('mcp-session-id') ?? [])
	const alive = await Promise.all(
		ids.map(async (id) => {
			const reply = await post(
				limited,
				{ jsonrpc: '2.0', id: 1, method: 'ping' },
				{ headers: { 'mcp-session-id': id } },
			)
			return reply.status === 200
		}),
	)
	const count = alive.filter(Boolean).length
	t.ok(count >= 1 && count <= 4, `${count} are left`)
})

void t.test('a call waits at most max_wait_s', async (t) => {
	const { call } = await connect(t, limited)
	const result = await call('run_agent', { agent: 'ada', prompt: 'too long' })
	t.match(result, {
		structuredContent: { status: 'started' },
		content: [{ text: /continues; get_run reads it later/ }],
	})
	t.not(result.isError, true)
	;(await model.called('too long')).answer('done')
})

void t.test('settings, reloads and stops of the plugin', async (t) => {
	const gateway = await startGateway({ config: configured('false') })
	t.teardown(() => gateway.stop())
	await gateway.request('POST', '/v1/agents', { body: { name: 'ada' } })
	const configure = async (settings: string, rest?: string): Promise<void> => {
		writeFileSync(join(gateway.home, 'config/gateway.yaml'), configured(settings, rest))
		await gateway.running.gateway.reload()
	}
	t.equal((await post(gateway, initialize)).status, 404, 'the plugin is off')

	await configure('{max_sessions: 5}')
	await t.test('an idle session ends; one with an open stream does not', async (t) => {
		const { now } = performance
		t.teardown(() => (performance.now = now))
		let later = 0
		performance.now = () => now.call(performance) + later
		const [idle, busy] = [await openRaw(gateway), await openRaw(gateway)]
		const stream = await openStream({ url: gateway.url, id: busy.id })
		const refused = { 'mcp-protocol-version': '1999-01-01' } // does not keep a session alive
		const status = async ({ post: ask }: typeof idle) =>
			(await ask({ jsonrpc: '2.0', id: 1, method: 'ping' }, refused)).status
		t.equal(await status(idle), 400)
		later += IDLE_TIMEOUT_MS
		await eventually(async () => (await status(idle)) === 404)
		t.equal(await status(busy), 400)
		stream.leave()
		await eventually(async () => {
			later += IDLE_TIMEOUT_MS // each time, since the gateway may notice the end of the stream late
			return (await status(busy)) === 404
		})
	})

	await t.test('a reload answers calls in progress, and the session continues with the next instance', async (t) => {
		const session = await openRaw(gateway)
		const at = { url: gateway.url, id: session.id }
		const own = await openStream(at)
		const call = await openStream(at, runAgent('over a reload'))
		const work = await model.called('over a reload')
		await configure('{max_sessions: 3}')
		t.equal(await call.ended, true)
		t.match(call.messages().at(-1), { id: 5, result: { structuredContent: { status: 'started' } } })
		t.equal(await own.ended, true)
		t.equal((await session.post({ jsonrpc: '2.0', id: 9, method: 'ping' })).status, 200)
		work.answer('done')
		await eventually(async () => (await statusOfRun(gateway)) === 'completed')
	})

	await t.test('sessions of local callers end once a token is required', async (t) => {
		const local = await openRaw(gateway)
		t.match(await local.request('ping'), { result: {} })
		const stream = await openStream({ url: gateway.url, id: local.id })
		// Without a token that can administer the gateway, the change would be refused.
		await gateway.request('POST', '/v1/auth/tokens', { body: { scopes: ['*'] } })
		await configure('{max_sessions: 3}', 'auth_mode: token\n')
		t.equal(await stream.ended, true)
		t.equal((await local.post({ jsonrpc: '2.0', id: 9, method: 'ping' })).status, 401)
		await configure('{max_sessions: 3}')
	})

	await t.test('a stopping gateway answers calls in progress', async (t) => {
		const { id } = await openRaw(gateway)
		const call = await openStream({ url: gateway.url, id }, runAgent('until the end'))
		const work = await model.called('until the end')
		const stopped = gateway.stop()
		work.answer('done')
		await stopped
		t.equal(await call.ended, true)
		t.match(call.messages().at(-1), { id: 5, result: { structuredContent: { answer: 'Well, done' } } })
	})
})

void t.test('the routes are documented', async (t) => {
	const { body } = await shared.request('GET', '/v1/openapi.json')
	for (const method of ['get', 'post', 'delete']) {
		const operation = body.paths['/mcp'][method]
		t.match(operation, { summary: /Model Context Protocol/, tags: ['mcp'] })
		t.match(operation.description, /`agents:read` or `runs:write`/)
		t.ok(operation.parameters.some((one: Answer) => one.name === 'mcp-session-id' && one.in === 'header'))
	}
	t.ok(body.paths['/mcp'].post.responses['200'].content['text/event-stream'])
})
