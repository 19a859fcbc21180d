/** Responses as Server-Sent Events, on connections that serve several requests. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { ServerResponse } from 'node:http'
import { connect } from 'node:net'
import type { Socket } from 'node:net'
import t from 'tap'
import type { Test } from 'tap'
import { openRedactor } from '../../../core/redactor/redactor.ts'
import type { OpenRequest, WaitingRequest } from '../../../plugins/auth/contract.ts'
import { answerStream } from '../../../plugins/auth/open-answer.ts'
import { listenOnLoopback } from '../../support/loopback.ts'
import { eventually } from '../../support/wait.ts'

interface Making {
	response: ServerResponse
	write(events: string): void
	end(last: string): void
	/** As the table of open requests does after a long silence. */
	beat(): void
}

const PIECE = `data: ${'x'.repeat(64 * 1024)}\n\n`
/** The last chunk of a body. */
const END = '\r\n0\r\n\r\n'

/** Like the delivery of events: what an event causes happens in the same turn. */
const later = (work: () => void): void => void setImmediate(() => void Promise.resolve().then(work))

/** A client that has requested the stream that `make` writes, and reads nothing yet. Any other path returns `next`. */
async function clientOf(t: Test, make: (making: Making) => void): Promise<Socket> {
	const serve = (response: ServerResponse): Promise<void> => {
		let entered: OpenRequest | undefined
		const open = { enter: (one: OpenRequest) => (entered = one), leave() {} }
		const client = { open, credentials: { scope: ['*'] }, response }
		const beat = (): void => entered?.beat?.(Number.POSITIVE_INFINITY)
		const settings = { heartbeat_s: 60, stall_timeout_s: 60 }
		return answerStream(openRedactor(), client as unknown as WaitingRequest, settings, (_signal, write) => {
			const { promise, resolve } = Promise.withResolvers<string>()
			later(() => make({ response, write: (events) => write(() => events), end: resolve, beat }))
			return Promise.resolve({ first: ': open\n\n', last: promise })
		})
	}
	const server = createServer((request, response) => {
		if (request.url === '/stream') void serve(response)
		else response.end('next')
	})
	const { port, stop } = await listenOnLoopback(server)
	const socket = connect(port, '127.0.0.1').setEncoding('latin1')
	t.teardown(async () => {
		socket.destroy()
		await stop()
	})
	socket.write('GET /stream HTTP/1.1\r\nhost: localhost\r\n\r\n')
	return socket
}

/** Returns the body of the stream, and the response to a second request on the same connection. */
async function readBoth(socket: Socket): Promise<[body: string, next: string]> {
	let text = ''
	socket.on('data', (data: string) => (text += data))
	await eventually(() => text.includes(END))
	socket.write('GET /next HTTP/1.1\r\nhost: localhost\r\n\r\n')
	await eventually(() => text.endsWith('next'))
	const [body = '', next = ''] = text.split(END)
	return [body, next]
}

void t.test('a stream to a slow client ends once, even if its last events arrive together', async (t) => {
	let isFull = false
	const socket = await clientOf(t, function make(making) {
		isFull = making.response.socket?.writableNeedDrain === true
		making.write(isFull ? 'data: last piece\n\n' : PIECE)
		if (isFull) making.end('data: [DONE]\n\n')
		else later(() => make(making))
	})
	await eventually(() => isFull)
	const [body, next] = await readBoth(socket)
	t.ok(body.endsWith('data: last piece\n\ndata: [DONE]\n\n'))
	t.match(next, /^HTTP\/1.1 200 OK\r\n/, 'nothing is sent between the responses')
})

void t.test('no heartbeat follows the end of a stream that the client has not read yet', async (t) => {
	let isHeartbeatDone = false
	const socket = await clientOf(t, function make(making) {
		const isSlow = (making.response.socket?.writableLength ?? 0) > 0
		if (!isSlow) {
			making.write(PIECE.slice(-8 * 1024))
			return later(() => make(making))
		}
		making.end('data: [DONE]\n\n')
		setImmediate(() => {
			making.beat()
			isHeartbeatDone = true
		})
	})
	await eventually(() => isHeartbeatDone)
	const [, next] = await readBoth(socket)
	t.match(next, /^HTTP\/1.1 200 OK\r\n/, 'nothing is sent between the responses')
})

void t.test('a client receives all events of one turn, however many', async (t) => {
	const PIECES = 20
	const socket = await clientOf(t, ({ write, end }) => {
		for (let at = 0; at < PIECES; at++) write(PIECE)
		end('data: [DONE]\n\n')
	})
	let text = ''
	socket.on('data', (data: string) => (text += data))
	await Promise.race([eventually(() => text.endsWith(END)), once(socket, 'close')])
	t.equal(text.split(PIECE).length - 1, PIECES)
	t.ok(text.endsWith(`data: [DONE]\n\n${END}`))
})
