/** Streams to clients that read nothing, or disconnect. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import { connect } from 'node:net'
import t from 'tap'
import type { Test } from 'tap'
import { stream } from '../../../plugins/mcp-server/stream.ts'
import { listenOnLoopback } from '../../support/loopback.ts'

const PIECE = new TextEncoder().encode(`data: ${'x'.repeat(64 * 1024)}\n\n`)

/** A server that answers with an endless stream, and a client's socket; `pulled` counts the pieces that were read from it. */
async function serve(t: Test, stallMs: number) {
	let pulled = 0
	const cancelled = Promise.withResolvers<void>()
	const settled = Promise.withResolvers<void>()
	const server = createServer((_, response) => {
		const body = new ReadableStream<Uint8Array>({
			pull(controller) {
				pulled++
				controller.enqueue(PIECE)
			},
			cancel: () => cancelled.resolve(),
		})
		stream(body, response, stallMs).then(settled.resolve, settled.reject)
	})
	const { port, stop } = await listenOnLoopback(server)
	t.teardown(stop)
	const socket = connect(port, '127.0.0.1')
	socket.on('error', () => {})
	t.teardown(() => socket.destroy())
	socket.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n')
	return { socket, cancelled: cancelled.promise, settled: settled.promise, pulled: () => pulled }
}

void t.test('a client that reads nothing is cut off, and nothing accumulates for it', async (t) => {
	const { socket, cancelled, settled, pulled } = await serve(t, 100)
	socket.pause()
	await cancelled
	await settled
	t.ok(pulled() > 1)
	t.ok(pulled() < 1_000, `${pulled()} pieces of 64 KiB fit into the buffers of the operating system`)
})

void t.test('a client that disconnects cancels the stream', async (t) => {
	const { socket, cancelled, settled } = await serve(t, 60_000)
	await once(socket, 'data')
	socket.destroy()
	await cancelled
	await settled
	t.pass('the sender settles')
})
