/** Streams of Server-Sent Events on connections with keep-alive. */
import { once } from 'node:events'
import { Agent, createServer, get } from 'node:http'
import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import t from 'tap'
import { chunk, Connection } from '../../../plugins/shared/sse.ts'
import { listenOnLoopback } from '../../support/loopback.ts'

void t.test('a connection serves one stream after another without leaking listeners', async (t) => {
	const sockets = new Set<Socket>()
	let closed = 0
	const server = createServer((request, response) => {
		const { socket } = request
		sockets.add(socket)
		const stream = new Connection(response, socket, 'data: 1\n\n', { stallMs: 60_000, closed: () => closed++ })
		stream.write(chunk('data: 2\n\n'))
		stream.write(chunk(''))
		stream.end('data: 3\n\n')
	})
	const { url, stop } = await listenOnLoopback(server)
	const agent = new Agent({ keepAlive: true, maxSockets: 1 })
	t.teardown(() => {
		agent.destroy()
		return stop()
	})
	const readStream = async (): Promise<string> => {
		const request = get(url, { agent })
		const [response] = (await once(request, 'response')) as [IncomingMessage]
		t.equal(response.headers.connection, 'keep-alive')
		return text(response)
	}
	t.equal(await readStream(), 'data: 1\n\ndata: 2\n\ndata: 3\n\n')
	const [socket] = sockets
	const listeners = (): (number | undefined)[] => ['drain', 'timeout'].map((name) => socket?.listenerCount(name))
	const before = listeners()
	for (let n = 0; n < 12; n++) t.equal(await readStream(), 'data: 1\n\ndata: 2\n\ndata: 3\n\n')
	t.equal(sockets.size, 1)
	t.equal(closed, 13)
	t.strictSame(listeners(), before)
})
