/** Answers as Server-Sent Events while they are made, over connections that serve several requests. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { ServerResponse } from 'node:http'
import { connect } from 'node:net'
import type { AddressInfo } from 'node:net'
import t from 'tap'
import { openRedactor } from '../../../core/redactor/redactor.ts'
import type { WaitingRequest } from '../../../plugins/auth/contract.ts'
import { answerStream } from '../../../plugins/auth/open-answer.ts'
import { eventually } from '../../support/wait.ts'

const PIECE = `data: ${'x'.repeat(64 * 1024)}\n\n`
/** The last chunk of a body. */
const END = '\r\n0\r\n\r\n'

void t.test('a stream to a slow client ends once, also if its last events come together', async (t) => {
	let isFull = false
	const server = createServer((request, response) => {
		if (request.url === '/stream') void serve(response)
		else response.end('next')
	})
	const serve = (response: ServerResponse): Promise<void> => {
		const client = { open: { enter() {}, leave() {} }, credentials: { scope: ['*'] }, response }
		const options = { heartbeatMs: 60_000, stallMs: 60_000, clearance: openRedactor().clearanceOf(['*']) }
		return answerStream(client as unknown as WaitingRequest, options, (_signal, write) => {
			const last = Promise.withResolvers<string>()
			const say = (): void => {
				isFull = response.socket?.writableNeedDrain === true
				write(() => (isFull ? 'data: last piece\n\n' : PIECE))
				if (isFull) last.resolve('data: [DONE]\n\n')
				else later()
			}
			// As where events are delivered: what follows from one of them comes in the same turn.
			const later = (): void => void setImmediate(() => void Promise.resolve().then(say))
			later()
			return Promise.resolve({ first: ': open\n\n', last: last.promise })
		})
	}
	await once(server.listen(0, '127.0.0.1'), 'listening')
	const socket = connect((server.address() as AddressInfo).port, '127.0.0.1')
	t.teardown(() => {
		socket.destroy()
		server.close()
	})
	socket.write('GET /stream HTTP/1.1\r\nhost: localhost\r\n\r\n')
	await eventually(() => isFull)
	let text = ''
	socket.setEncoding('latin1').on('data', (data: string) => (text += data))
	await eventually(() => text.includes(END))
	socket.write('GET /next HTTP/1.1\r\nhost: localhost\r\n\r\n')
	await eventually(() => text.endsWith('next'))
	const [body = '', next = ''] = text.split(END)
	t.ok(body.endsWith('data: last piece\n\ndata: [DONE]\n\n'))
	t.match(next, /^HTTP\/1.1 200 OK\r\n/, 'nothing comes between the answers')
})
