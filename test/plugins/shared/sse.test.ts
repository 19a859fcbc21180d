/** Streams of Server-Sent Events over connections that serve several requests. */
import { once } from 'node:events'
import { Agent, createServer, get } from 'node:http'
import type { IncomingMessage } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import t from 'tap'
import { chunk, Connection } from '../../../plugins/shared/sse.ts'

void t.test('a connection serves one stream after another, and nothing of them stays with it', async (t) => {
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
	await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
	const agent = new Agent({ keepAlive: true, maxSockets: 1 })
	t.teardown(() => {
		agent.destroy()
		server.close()
		server.closeAllConnections()
	})
	const ask = async (): Promise<string> => {
		const request = get({ port: (server.address() as AddressInfo).port, host: '127.0.0.1', agent })
		const [response] = (await once(request, 'response')) as [IncomingMessage]
		t.equal(response.headers.connection, 'keep-alive')
		return text(response)
	}
	t.equal(await ask(), 'data: 1\n\ndata: 2\n\ndata: 3\n\n')
	const [socket] = sockets
	const count = (): (number | undefined)[] => ['drain', 'timeout'].map((name) => socket?.listenerCount(name))
	const before = count()
	for (let n = 0; n < 12; n++) t.equal(await ask(), 'data: 1\n\ndata: 2\n\ndata: 3\n\n')
	t.equal(sockets.size, 1)
	t.equal(closed, 13)
	t.strictSame(count(), before)
})
