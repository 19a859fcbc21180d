import { once } from 'node:events'
import http from 'node:http'
import type { ServerResponse } from 'node:http'
import net from 'node:net'
import t from 'tap'
import type { Test } from 'tap'
import { chunk, Connection, turnOf } from '../../../plugins/shared/sse.ts'
import { greeting } from '../../../plugins/events/frames.ts'
import { listenOnLoopback } from '../../support/loopback.ts'

/** A server that yields the responses of `/stream`. The test sends all other responses. */
async function serve(
	t: Test,
): Promise<{ port: number; streams: AsyncIterator<ServerResponse>; others: ServerResponse[] }> {
	const waiting: ServerResponse[] = []
	const others: ServerResponse[] = []
	let wake = (): void => {}
	const server = http.createServer((request, response) => {
		if (request.url === '/stream') waiting.push(response)
		else others.push(response)
		wake()
	})
	const { port, stop } = await listenOnLoopback(server)
	t.teardown(stop)
	async function* arrive(): AsyncGenerator<ServerResponse> {
		for (;;) {
			const next = waiting.shift()
			if (next) yield next
			else await new Promise<void>((resolve) => (wake = resolve))
		}
	}
	return { port, streams: arrive(), others }
}

async function open(
	streams: AsyncIterator<ServerResponse>,
	stallMs = 30_000,
): Promise<{ connection: Connection; closed: Promise<void> }> {
	const response = (await streams.next()).value as ServerResponse
	const { promise: closed, resolve } = Promise.withResolvers<void>()
	const socket = await turnOf(response)
	if (!socket) throw new Error('the client went away')
	return { connection: new Connection(response, socket, greeting(true), { stallMs, closed: resolve }), closed }
}

const MIB = 1024 * 1024
const ask = (path: string): string => `GET ${path} HTTP/1.1\r\nhost: localhost\r\n\r\n`

void t.test('a stream that is pipelined behind another request waits for its turn', async (t) => {
	const { port, streams, others } = await serve(t)
	const socket = net.connect(port, '127.0.0.1')
	let received = ''
	socket.on('data', (data) => (received += data.toString()))
	socket.write(ask('/first') + ask('/stream'))
	const opening = open(streams)
	while (others.length === 0) await new Promise(setImmediate)
	t.equal(received, '')
	others[0]?.end('first answer')
	const { connection } = await opening
	connection.write(chunk('data: 1\n\n'))
	while (!received.includes('data: 1')) await once(socket, 'data')
	t.match(
		received,
		/^HTTP\/1\.1 200[^]*first answer[^]*HTTP\/1\.1 200[^]*event-stream[^]*retry: 3000[^]*data: 1\n\n\r\n$/,
	)
	socket.destroy()
})

void t.test('a client that disconnects before its turn is detected', async (t) => {
	const { port, streams, others } = await serve(t)
	const socket = net.connect(port, '127.0.0.1')
	socket.write(ask('/first') + ask('/stream'))
	const response = (await streams.next()).value as ServerResponse
	const turn = turnOf(response)
	t.equal(others.length, 1)
	socket.destroy()
	t.equal(await turn, null)
})

void t.test('a client that reads nothing is disconnected, with a limited backlog', async (t) => {
	const { port, streams } = await serve(t)
	const socket = net.connect(port, '127.0.0.1')
	socket.pause()
	socket.write(ask('/stream'))
	const { connection, closed } = await open(streams, 200)
	const block = chunk('x'.repeat(64 * 1024))
	let ready = 0
	while (!connection.full) {
		connection.write(block)
		await new Promise(setImmediate)
	}
	connection.whenReady(() => ready++)
	t.ok(connection.backlog > 0 && connection.backlog < MIB)
	await closed
	t.equal(ready, 0)
	socket.destroy()
})

void t.test('a client that reads slowly is not disconnected', async (t) => {
	const LIMIT_MS = 2_500
	const { port, streams } = await serve(t)
	const socket = net.connect(port, '127.0.0.1')
	socket.write(ask('/stream'))
	const { connection, closed } = await open(streams, LIMIT_MS)
	let isClosed = false
	void closed.then(() => (isClosed = true))
	// Pauses after every MiB for less than the limit; all of it takes much longer.
	let bytes = 0
	socket.on('data', ({ length }) => {
		if (Math.floor(bytes / MIB) < Math.floor((bytes += length) / MIB)) {
			socket.pause()
			setTimeout(() => socket.resume(), 400)
		}
	})
	const began = performance.now()
	connection.write(chunk('x'.repeat(16 * MIB)))
	t.ok(connection.full)
	await Promise.race([new Promise<void>((resolve) => connection.whenReady(resolve)), closed])
	t.ok(performance.now() - began > LIMIT_MS)
	t.notOk(isClosed)
	socket.destroy()
	await closed
})

void t.test('the end follows everything written; a stalled client does not delay it', async (t) => {
	const { port, streams } = await serve(t)
	const [reader, stalled] = [net.connect(port, '127.0.0.1'), net.connect(port, '127.0.0.1')]
	reader.write(ask('/stream'))
	const good = await open(streams)
	stalled.pause()
	stalled.write(ask('/stream'))
	const bad = await open(streams)
	bad.connection.write(chunk('x'.repeat(16 * MIB)))
	let received = ''
	reader.on('data', (data) => (received += data.toString()))
	good.connection.write(chunk('data: 1\n\n'))
	for (const { connection } of [good, bad]) connection.end(': bye\n\n')
	await Promise.all([good.closed, bad.closed, once(reader, 'end')])
	t.match(received, /data: 1\n\n\r\n7\r\n: bye\n\n\r\n0\r\n\r\n$/)
	stalled.destroy()
})
