import { spawn } from 'node:child_process'
import { EventEmitter, once } from 'node:events'
import type { ServerResponse } from 'node:http'
import net from 'node:net'
import { createInterface } from 'node:readline'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { Listeners } from '../../../core/http/listeners.ts'
import { startHost } from '../../support/host.ts'
import { eventually } from '../../support/wait.ts'

const upgrade = 'GET /x HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n'

void t.test('clients that request an upgrade and disconnect at once do no harm', async (t) => {
	const host = await startHost(t.testdir(), {}, {})
	t.teardown(() => host.stop())
	const { port } = new URL(host.gateway.status.url('main') ?? '')
	for (let round = 0; round < 100; round++) {
		const socket = net.connect(Number(port), '127.0.0.1')
		await once(socket, 'connect')
		socket.write(upgrade + 'A'.repeat(round * 100))
		socket.resetAndDestroy()
	}
	t.equal((await host.get('/nothing')).status, 404, 'the gateway still answers')
})

void t.test('an upgrade that no plugin handles is answered with 404', async (t) => {
	const host = await startHost(t.testdir(), {}, {})
	t.teardown(() => host.stop())
	const { port } = new URL(host.gateway.status.url('main') ?? '')
	const socket = net.connect(Number(port), '127.0.0.1')
	socket.write(upgrade)
	const [data] = (await once(socket, 'data')) as [Buffer]
	t.match(data.toString(), /^HTTP\/1\.1 404 Not Found\r\n.*"code":"not_found"/s)
	t.match(data.toString(), /^x-request-id: [\w-]{36}\r$/m)
	socket.destroy()
})

void t.test('invalid HTTP is answered, with a request id', async (t) => {
	const host = await startHost(t.testdir(), {}, {})
	t.teardown(() => host.stop())
	const { port } = new URL(host.gateway.status.url('main') ?? '')
	for (const [text, status] of [
		['GET / NONSENSE\r\n\r\n', 400],
		[`GET / HTTP/1.1\r\nHost: x\r\nX: ${'a'.repeat(20_000)}\r\n\r\n`, 431],
	] as const) {
		const socket = net.connect(Number(port), '127.0.0.1')
		socket.write(text)
		const [data] = (await once(socket, 'data')) as [Buffer]
		t.match(data.toString(), new RegExp(`^HTTP/1\\.1 ${status} .*^x-request-id: [\\w-]{36}\r$`, 'ms'))
		socket.destroy()
	}
})

const recorder = `export default { name: 'recorder', http(server) {
	const received = []
	let held = Promise.withResolvers()
	const route = (method, path, handler) => server.route({ method, path, handler })
	route('POST', '/receive', ({ payload }) => (received.push(payload.text), held.promise))
	route('GET', '/hold', () => held.promise)
	route('GET', '/received', () => received)
	route('GET', '/release', () => (held.resolve('released'), held = Promise.withResolvers(), 'done'))
} }`

void t.test('an upgrade to anything but WebSocket is ignored, and the request is served', async (t) => {
	const host = await startHost(t.testdir(), { 'recorder/index.js': recorder }, { recorder: {} })
	t.teardown(() => host.stop())
	const ask = (line: string, ...headers: string[]): string => [line, 'Host: x', ...headers, '', ''].join('\r\n')
	const post = (text: string, ...headers: string[]): string => {
		const body = JSON.stringify({ text })
		const length = `Content-Length: ${body.length}`
		return ask('POST /receive HTTP/1.1', 'Content-Type: application/json', length, ...headers) + body
	}
	const h2c = ['Connection: Upgrade, HTTP2-Settings', 'Upgrade: h2c', 'HTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA']
	/** All responses until the gateway closes the connection. The first one is held until all pieces are sent. */
	const exchange = async (...pieces: string[]): Promise<string> => {
		const { port } = new URL(host.gateway.status.url('main') ?? '')
		const socket = net.connect(Number(port), '127.0.0.1').setNoDelay()
		t.teardown(() => socket.destroy())
		let answer = ''
		socket.setEncoding('utf8').on('data', (text: string) => (answer += text))
		const closed = once(socket, 'close')
		await once(socket, 'connect')
		for (const piece of pieces) {
			socket.write(piece)
			await host.get('/received')
		}
		await host.get('/release')
		await closed
		return answer
	}
	const received = async (): Promise<unknown> => JSON.parse((await host.get('/received')).body)

	const held = ask('GET /hold HTTP/1.1', ...h2c)
	t.match(await exchange(held), /^HTTP\/1\.1 200 OK\r\n.*connection: close\r\n.*\r\nreleased$/is)
	t.match(await exchange(ask('GET /none HTTP/1.1', 'Connection: upgrade', 'Upgrade: TLS/1.0, h2c')), /^HTTP\/1\.1 404 /)
	t.match(await exchange(upgrade.replace('HTTP/1.1', 'HTTP/1.0')), /^HTTP\/1\.1 404 .*there is no GET at this path/s)
	t.match(await exchange(post('one', ...h2c)), /^HTTP\/1\.1 200 OK\r\n.*\r\nreleased$/s)
	t.strictSame(await received(), ['one'])

	const inner = post('smuggled')
	const outer = ask('POST /receive HTTP/1.1', 'Content-Type: text/plain', `Content-Length: ${inner.length}`)
	for (const pieces of [
		[held + outer, inner],
		[post('two', ...h2c) + outer, inner],
		[held + inner],
		[held, inner],
		[held, upgrade],
	]) {
		const answer = await exchange(...pieces)
		t.match(answer, /^HTTP\/1\.1 200 OK\r\n.*\r\nreleased$/s)
		t.equal(answer.match(/HTTP\/1\.1 /g)?.length, 1, 'no later request is answered')
	}
	t.strictSame(await received(), ['one', 'two'], 'nor handled')
})

void t.test('a client cannot fill the memory with requests after the last one of its connection', async (t) => {
	const host = await startHost(t.testdir(), { 'recorder/index.js': recorder }, { recorder: {} })
	t.teardown(() => host.stop())
	const { port } = new URL(host.gateway.status.url('main') ?? '')
	const socket = net.connect(Number(port), '127.0.0.1')
	socket.on('error', () => {})
	t.teardown(() => socket.destroy())
	socket.write('GET /hold HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n')
	// Of 32 bytes, so that each chunk the gateway reads begins with a request: it discards everything after an invalid one.
	const requests = 'GET /other HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(10_000)
	// More than the buffers of the system on both sides.
	const LIMIT_BYTES = 16 * 1024 * 1024
	let isAccepted = true
	while (isAccepted && socket.bytesWritten < LIMIT_BYTES) {
		socket.write(requests)
		// Once other requests are answered, the socket has accepted as much as it can.
		for (let round = 0; socket.writableLength > 0 && round < 50; round++) await host.get('/received')
		isAccepted = socket.writableLength === 0
	}
	t.notOk(isAccepted, `${socket.bytesWritten} bytes were written`)
})

void t.test('pipelined requests are handled one after another, and their number is limited', async (t) => {
	const host = await startHost(t.testdir(), { 'recorder/index.js': recorder }, { recorder: {} })
	t.teardown(() => host.stop())
	const { port } = new URL(host.gateway.status.url('main') ?? '')
	const socket = net.connect(Number(port), '127.0.0.1')
	t.teardown(() => socket.destroy())
	let answers = ''
	socket.setEncoding('utf8').on('data', (part: string) => (answers += part))
	const ask = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`
	for (let round = 1; round <= 4; round++) {
		socket.write(ask('/received').repeat(60))
		await eventually(() => answers.split('HTTP/1.1 200').length === round * 60 + 1)
	}
	const body = '{"text":1}'
	const post = `POST /receive HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`
	socket.write(post.repeat(100))
	const received = async (): Promise<number> => (JSON.parse((await host.get('/received')).body) as unknown[]).length
	for (let count = 1; count <= 65; count++) {
		t.equal(await eventually(received, (now) => now >= count), count)
		await host.get('/release')
	}
	await once(socket, 'close')
	t.equal(answers.split('released').length - 1, 65, 'the connection ends after the response to the last one')
	t.equal(await received(), 65)
})

void t.test('upgraded sockets whose clients stay connected do not delay the stop', async (t) => {
	const upgrader = `export default { name: 'upgrader', start(ctx) {
		ctx.upgrade('main', '/upgraded', (request, socket) => socket.write('upgraded'))
	} }`
	const host = await startHost(t.testdir(), { 'upgrader/index.js': upgrader }, { upgrader: {} })
	const { port } = new URL(host.gateway.status.url('main') ?? '')
	for (const path of ['/x', '/upgraded']) {
		const socket = net.connect({ port: Number(port), host: '127.0.0.1', allowHalfOpen: true })
		t.teardown(() => socket.destroy())
		socket.write(upgrade.replace('/x', path))
		await once(socket, 'data')
	}
	await host.stop()
	t.pass('the host has stopped')
})

const silent = { info() {}, warn() {}, error() {} } as unknown as ConstructorParameters<typeof Listeners>[0]

void t.test('unused connections do not delay the stop', async (t) => {
	const listeners = new Listeners(silent)
	;(await listeners.open({ main: { host: '127.0.0.1', port: 0 } })).take()
	const { port } = new URL(listeners.url('main') ?? '')
	const connect = () => net.connect({ port: Number(port), host: '127.0.0.1', allowHalfOpen: true })
	const unused = connect()
	t.teardown(() => unused.destroy())
	unused.resume().on('error', () => {})
	// Connections are accepted in order, so a response on a later one shows that this one was accepted.
	const used = connect()
	used.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n')
	await once(used, 'data')
	used.destroy()

	await listeners.close(2 ** 31 - 1)
	t.pass('the listeners have closed')
})

void t.test('a connection that is never idle does not delay the stop', async (t) => {
	const listeners = new Listeners(silent)
	;(await listeners.open({ main: { host: '127.0.0.1', port: 0 } })).take()
	const requests = new EventEmitter<{ begin: [ServerResponse] }>()
	listeners.current = {
		request: (_address, _request, response) => void requests.emit('begin', response),
		upgrade: () => false,
	}
	const next = async (): Promise<ServerResponse> => (await once(requests, 'begin'))[0] as ServerResponse
	const { port } = new URL(listeners.url('main') ?? '')
	const client = net.connect(Number(port), '127.0.0.1')
	t.teardown(() => client.destroy())
	const answers = text(client)
	const ask = 'GET / HTTP/1.1\r\nHost: localhost\r\n\r\n'

	client.write(ask)
	const first = await next()
	const closed = listeners.close(2 ** 31 - 1)
	client.write(ask + ask)
	const beginning = next()
	first.end('one')
	const second = await beginning
	requests.on('begin', () => t.fail('a third request is not handled, since it could not be answered'))
	second.end('two')
	t.match(await answers, /connection: keep-alive\r\n.*\r\none.*connection: close\r\n.*\r\ntwo$/is)
	await closed
})

for (const [kind, request] of [
	['new', ''],
	['upgraded', upgrade],
] as const)
	void t.test(
		`${kind} connections: reaching the limit for open files is logged`,
		{ skip: process.platform === 'win32' },
		async (t) => {
			const program = fileURLToPath(new URL('../../fixtures/few-files.ts', import.meta.url))
			const child = spawn('sh', ['-c', 'ulimit -n 60 && exec "$0" "$1"', process.execPath, program], {
				stdio: ['ignore', 'pipe', 'inherit'],
			})
			t.teardown(() => child.kill())
			const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
			const port = Number((await lines.next()).value)
			const sockets = Array.from({ length: 60 }, () => net.connect(port, '127.0.0.1').on('error', () => {}))
			for (const socket of sockets) socket.write(request)
			t.teardown(() => sockets.forEach((socket) => socket.destroy()))
			t.match((await lines.next()).value, /the limit of this process for open files .* is reached, .*raise LimitNOFILE/)
		},
	)
