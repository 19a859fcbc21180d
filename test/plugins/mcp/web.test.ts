/** HTTP servers that break the protocol, and how the gateway reacts. */
import { createServer } from 'node:http'
import type { IncomingMessage, ServerResponse } from 'node:http'
import t from 'tap'
import type { Test } from 'tap'
import { startGateway } from '../../support/gateway.ts'
import type { Answer } from '../../support/gateway.ts'
import { listenOnLoopback } from '../../support/loopback.ts'
import { add, callTool, until } from '../../support/mcp.ts'
import { follow } from '../../support/runs.ts'

const gateway = await startGateway()
t.teardown(() => gateway.stop())

type Handle = (message: Answer, request: IncomingMessage, response: ServerResponse) => unknown

const NO_RESPONSE = Symbol('no response')

/**
 * A server that answers each message with the result of `handle`, or correctly if that is undefined. `resume`: answers a request
 * to resume a broken stream.
 */
async function serve(t: Test, handle: Handle, resume?: (response: ServerResponse) => void): Promise<string> {
	const server = createServer((request, response) => {
		void (async () => {
			let text = ''
			for await (const part of request.setEncoding('utf8')) text += String(part)
			if (request.headers['last-event-id'] !== undefined && resume) return resume(response)
			if (request.method !== 'POST') return void response.writeHead(request.method === 'GET' ? 405 : 200).end()
			const message = JSON.parse(text) as Answer
			const result = handle(message, request, response) ?? correctResult(message)
			if (result === NO_RESPONSE || response.headersSent) return
			if (message.id === undefined) return void response.writeHead(202).end()
			response.setHeader('content-type', 'application/json')
			response.end(JSON.stringify({ jsonrpc: '2.0', id: message.id, result }))
		})()
	})
	const { url, stop } = await listenOnLoopback(server)
	t.teardown(stop)
	return `${url}/mcp`
}

function correctResult({ method, params }: Answer): unknown {
	if (method === 'initialize') {
		const { protocolVersion } = params
		return { protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'odd', version: '1' } }
	}
	if (method === 'tools/list') return { tools: [{ name: 'do', inputSchema: { type: 'object' } }] }
	return method === 'tools/call' ? { content: [{ type: 'text', text: 'done' }] } : {}
}

void t.test('after the server forgot a session, the gateway opens another one and repeats the call', async (t) => {
	let sessions = 0
	let forgotten = ''
	let calls = 0
	const url = await serve(t, ({ method }, request, response) => {
		if (method === 'initialize') response.setHeader('mcp-session-id', `session-${++sessions}`)
		else if (request.headers['mcp-session-id'] === forgotten) response.writeHead(404).end()
		if (method === 'tools/call') calls++
	})
	const ada = await follow(t, gateway, 'ada')
	await add(ada, { name: 'web', transport: 'http', url })
	t.equal((await callTool(ada, 'mcp__web__do')).result, 'done')
	forgotten = 'session-1'
	t.equal((await callTool(ada, 'mcp__web__do')).result, 'done')
	t.strictSame([sessions, calls], [2, 3])
	t.match((await ada.stream.waitFor('mcp.disconnected')).payload, { reason: 'it no longer knows the session' })
})

void t.test('a response that is too large fails the attempt to connect', async (t) => {
	const url = await serve(t, ({ method }) =>
		method === 'tools/list' ? { tools: [], padding: 'x'.repeat(5 * 1024 * 1024) } : undefined,
	)
	const bea = await follow(t, gateway, 'bea')
	const { id, status } = await add(bea, { name: 'web', transport: 'http', url })
	t.equal(status, 'reconnecting')
	t.match((await bea.call(`mcp/${id}`)).body.last_error.message, /more than 4194304 bytes/)
})

void t.test('a call whose event stream breaks fails at once with the reason, and the connection stays', async (t) => {
	const url = await serve(t, ({ id, method, params }, _request, response) => {
		if (method !== 'tools/call') return
		const { how } = params.arguments
		response.writeHead(200, { 'content-type': 'text/event-stream' })
		const event = (text: string): string => {
			const result = { content: [{ type: 'text', text }] }
			return `data: ${JSON.stringify({ jsonrpc: '2.0', id, result })}\n\n`
		}
		response.write('event: message\n')
		if (how === 'large') response.end(event('x'.repeat(5 * 1024 * 1024)))
		else response.write(': a comment\n', () => response.destroy())
	})
	const hedy = await follow(t, gateway, 'hedy')
	const { id } = await add(hedy, { name: 'web', transport: 'http', url })
	const large = await callTool(hedy, 'mcp__web__do', { how: 'large' })
	t.match(large, {
		event_type: 'mcp.failed',
		code: 'mcp_failed',
		message: /interrupted \(it sent a message of more than 4194304 bytes\); its outcome is unknown/,
	})
	const broken = await callTool(hedy, 'mcp__web__do', { how: 'breaks' })
	t.match(broken, {
		event_type: 'mcp.failed',
		code: 'mcp_failed',
		message: /interrupted \(.+\); its outcome is unknown/,
	})
	t.match((await hedy.call(`mcp/${id}`)).body, { status: 'connected', failures: 0 })
})

void t.test('a broken stream whose events have ids is resumed', async (t) => {
	let call_id: unknown
	const url = await serve(
		t,
		({ id, method }, _request, response) => {
			if (method !== 'tools/call') return
			call_id = id
			response.writeHead(200, { 'content-type': 'text/event-stream' })
			response.write('retry: 10\nid: 1\ndata:\n\n', () => response.destroy())
		},
		(response) => {
			const result = { content: [{ type: 'text', text: 'done after all' }] }
			response.writeHead(200, { 'content-type': 'text/event-stream' })
			response.end(`data: ${JSON.stringify({ jsonrpc: '2.0', id: call_id, result })}\n\n`)
		},
	)
	const iris = await follow(t, gateway, 'iris')
	await add(iris, { name: 'web', transport: 'http', url })
	t.match(await callTool(iris, 'mcp__web__do'), { result: 'done after all' })
})

void t.test('a server that requires a login, or supports only other revisions, is not retried', async (t) => {
	const cleo = await follow(t, gateway, 'cleo')
	const closed = await serve(t, (_, __, response) => void response.writeHead(401).end('who are you?'))
	const login = await add(cleo, { name: 'login', transport: 'http', url: closed })
	t.equal(login.status, 'error')
	t.match((await cleo.call(`mcp/${login.id}`)).body.last_error.message, /who are you\?/)
	const other = await serve(t, ({ method }) =>
		method === 'initialize'
			? { protocolVersion: '1999-01-01', capabilities: {}, serverInfo: { name: 'old', version: '1' } }
			: undefined,
	)
	// Like servers that accept only requests without `initialize`.
	const newer = await serve(t, ({ id, method }, _, response) => {
		const data = { supported: ['2026-07-28'], requested: '2025-11-25' }
		const error = { code: -32022, message: 'Unsupported protocol version: 2025-11-25', data }
		if (method === 'initialize') response.writeHead(400).end(JSON.stringify({ jsonrpc: '2.0', id, error }))
	})
	for (const [name, transport, url, revision] of [
		['old', 'http', other, '1999-01-01'],
		['newer', 'http', newer, '2026-07-28'],
		['newer-sse', 'sse', newer, '2026-07-28'],
	]) {
		const { id, status } = await add(cleo, { name, transport, url })
		t.equal(status, 'error')
		const message = `^the server supports only revision ${revision} of MCP, and the gateway supports \\S+ to \\S+; configure`
		t.match((await cleo.call(`mcp/${id}`)).body.last_error.message, new RegExp(message))
	}
})

void t.test('an address without an MCP server is reported as such, and is not retried', async (t) => {
	const carl = await follow(t, gateway, 'carl')
	for (const status of [200, 404]) {
		const page = createServer((request, response) => {
			response.writeHead(request.method === 'GET' ? status : 405, { 'content-type': 'text/html' }).end('<html>')
		})
		const { url, stop } = await listenOnLoopback(page)
		t.teardown(stop)
		const added = await add(carl, { name: `page-${status}`, transport: 'sse', url })
		t.equal(added.status, 'error')
		t.match(
			(await carl.call(`mcp/${added.id}`)).body.last_error.message,
			new RegExp(`^there is no MCP server at this address: it answers POST with 405, and GET with ${status}`),
		)
		const { id } = await add(carl, { name: `http-${status}`, transport: 'http', url })
		t.match(
			(await carl.call(`mcp/${id}`)).body.last_error.message,
			/^there is no MCP server over .* set the transport to "sse"$/,
		)
	}
})

void t.test('the gateway stays responsive while a stream floods it with notifications', async (t) => {
	const notification = `data: ${JSON.stringify({ jsonrpc: '2.0', method: 'notifications/message', params: {} })}\n\n`
	let flooding = false
	const url = await serve(t, ({ method }, _request, response) => {
		if (method !== 'tools/call') return
		flooding = true
		response.writeHead(200, { 'content-type': 'text/event-stream' })
		const pour = (): void => {
			while (flooding && !response.destroyed && response.write(notification.repeat(500))) continue
		}
		response.on('drain', pour)
		response.on('close', () => (flooding = false))
		pour()
	})
	const dora = await follow(t, gateway, 'dora')
	const { id } = await add(dora, { name: 'web', transport: 'http', url })
	const run_id = await dora.start('/tool mcp__web__do {}')
	await dora.waitFor(run_id, 'mcp.called')
	for (let n = 0; n < 5; n++) t.equal((await gateway.request('GET', '/v1/agents/dora/mcp')).status, 200)
	await gateway.request('POST', '/v1/agents/dora/stop', { body: {} })
	t.equal((await dora.ended(run_id)).event_type, 'run.stopped')
	await gateway.request('DELETE', `/v1/agents/dora/mcp/${id}`)
})

void t.test('a stream accepts every kind of line end, and the size limit applies to single events', async (t) => {
	const notification = { jsonrpc: '2.0', method: 'notifications/message', params: { data: 'x'.repeat(64 * 1024) } }
	const url = await serve(t, ({ id, method, params }, _request, response) => {
		if (method !== 'tools/call') return
		const end = String(params.arguments.end).repeat(2)
		response.writeHead(200, { 'content-type': 'text/event-stream' })
		for (let n = 0; n < 80; n++) response.write(`data: ${JSON.stringify(notification)}${end}`)
		const result = { content: [{ type: 'text', text: 'done' }] }
		// Followed by a comment: whether a \r is a whole line end is known only after the next character.
		response.end(`data: ${JSON.stringify({ jsonrpc: '2.0', id, result })}${end}: over\n`)
	})
	const gil = await follow(t, gateway, 'gil')
	await add(gil, { name: 'web', transport: 'http', url })
	for (const end of ['\n', '\r\n', '\r']) {
		t.equal((await callTool(gil, 'mcp__web__do', { end })).result, 'done', JSON.stringify(end))
	}
})

void t.test('a list of messages is accepted, unless it is large enough to block the gateway', async (t) => {
	const notification = { jsonrpc: '2.0', method: 'notifications/message', params: {} }
	const url = await serve(t, ({ id, method, params }, _request, response) => {
		if (method !== 'tools/call') return
		const result = { content: [{ type: 'text', text: 'done' }] }
		const list = [
			...Array.from({ length: params.arguments.notifications }, () => notification),
			{ jsonrpc: '2.0', id, result },
		]
		response.writeHead(200, { 'content-type': 'application/json' }).end(` ${JSON.stringify(list)}`)
	})
	const fay = await follow(t, gateway, 'fay')
	await add(fay, { name: 'web', transport: 'http', url })
	t.equal((await callTool(fay, 'mcp__web__do', { notifications: 100 })).result, 'done')
	const flood = await callTool(fay, 'mcp__web__do', { notifications: 50_000 })
	t.match([flood.event_type, flood.message], ['mcp.failed', /a list of messages of more than 65536 bytes/])
})

void t.test('a server that never answers delays neither runs nor its removal', async (t) => {
	const url = await serve(t, () => NO_RESPONSE)
	const emma = await follow(t, gateway, 'emma')
	const adding = emma.call('mcp', { name: 'mute', transport: 'http', url })
	await emma.stream.waitFor('mcp.added')
	await emma.complete('hello')
	const [server] = (await emma.call('mcp')).body
	t.equal(server.status, 'connecting')
	t.equal((await gateway.request('DELETE', `/v1/agents/emma/mcp/${server.id}`)).status, 204)
	t.ok([201, 404].includes((await adding).status))
	await until(gateway, 'emma', server.id, ({ statusCode }) => statusCode === 404)
})
