/** The way of events to clients that do not take them. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import { connect } from 'node:net'
import type { AddressInfo } from 'node:net'
import t from 'tap'
import type { Test } from 'tap'
import { stream } from '../../../plugins/mcp-server/stream.ts'

const PIECE = new TextEncoder().encode(`data: ${'x'.repeat(64 * 1024)}\n\n`)

/** A server whose every answer is a stream without end; `taken` counts its pieces. */
async function serve(t: Test, stallMs: number) {
	let taken = 0
	const cancelled = Promise.withResolvers<void>()
	const settled = Promise.withResolvers<void>()
	const server = createServer((_, response) => {
		const body = new ReadableStream<Uint8Array>({
			pull(controller) {
				taken++
				controller.enqueue(PIECE)
			},
			cancel: () => cancelled.resolve(),
		})
		stream(body, response, stallMs).then(settled.resolve, settled.reject)
	}).listen(0, '127.0.0.1')
	await once(server, 'listening')
	t.teardown(() => {
		server.closeAllConnections()
		server.close()
	})
	const { port } = server.address() as AddressInfo
	const socket = connect(port, '127.0.0.1')
	socket.on('error', () => {})
	t.teardown(() => socket.destroy())
	socket.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n')
	return { socket, cancelled: cancelled.promise, settled: settled.promise, taken: () => taken }
}

void t.test('a client that takes nothing is cut off, and nothing piles up for it', async (t) => {
	const { socket, cancelled, settled, taken } = await serve(t, 100)
	socket.pause()
	await cancelled
	await settled
	t.ok(taken() > 1)
	t.ok(taken() < 1_000, `${taken()} pieces of 64 KiB were asked for, which the operating system holds`)
})

void t.test('a client that leaves cancels the stream', async (t) => {
	const { socket, cancelled, settled } = await serve(t, 60_000)
	await once(socket, 'data')
	socket.destroy()
	await cancelled
	await settled
	t.pass('and the sender settles')
})
