/** Clients that do not read their responses, which stay in memory meanwhile. */
import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import net from 'node:net'
import type { Socket } from 'node:net'
import { pino } from 'pino'
import t from 'tap'
import type { Test } from 'tap'
import { Listeners } from '../../../core/http/listeners.ts'
import type { UnsentLimits } from '../../../core/http/unsent-answers.ts'
import { eventually } from '../../support/wait.ts'

const MIB = 1024 * 1024
/** More than the kernel's buffers of one connection hold. */
const ANSWER = Buffer.alloc(16 * MIB, 'x')

/** Starts listeners, and returns a function that connects a client and returns its socket and its open response. */
async function serve(
	t: Test,
	limits: UnsentLimits,
): Promise<() => Promise<{ socket: Socket; response: ServerResponse }>> {
	const listeners = new Listeners(pino({ level: 'silent' }), new Map(), limits)
	const waiting: ServerResponse[] = []
	listeners.current = { request: (_address, _request, response) => void waiting.push(response), upgrade: () => false }
	;(await listeners.open({ main: { host: '127.0.0.1', port: 0 } })).take()
	t.teardown(() => listeners.close(0))
	const { port } = new URL(listeners.url('main') ?? '')
	return async () => {
		const socket = net.connect(Number(port), '127.0.0.1')
		t.teardown(() => socket.destroy())
		socket.on('error', () => {}) // the connection is closed by the server
		socket.pause()
		socket.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n')
		const response = await eventually(() => waiting.shift())
		if (!response) throw new Error('no request arrived')
		return { socket, response }
	}
}

/** Settles once this many bytes have arrived. */
async function read(socket: Socket, count: number): Promise<void> {
	let bytes = 0
	socket.on('data', (part: Buffer) => (bytes += part.length)).resume()
	await eventually(() => bytes >= count)
}

void t.test('a client that does not read its response is disconnected, even below the memory limit', async (t) => {
	const connect = await serve(t, { stall_ms: 500, bytes: 1024 * MIB })
	const [stalled, quiet, reading] = [await connect(), await connect(), await connect()]
	quiet.response.write('begin')
	stalled.response.end(ANSWER)
	const complete = read(reading.socket, ANSWER.length)
	reading.response.end(ANSWER)
	await once(stalled.response, 'close')
	t.notOk(stalled.response.writableFinished)
	await complete
	quiet.response.end('end')
	await read(quiet.socket, 'beginend'.length)
	t.pass('clients that read, or whose response is slow, are not disconnected')
})

void t.test('unread responses have a common limit, and the oldest connections are closed', async (t) => {
	const connect = await serve(t, { stall_ms: 3_600_000, bytes: 40 * MIB })
	const opened: Awaited<ReturnType<typeof connect>>[] = []
	for (let n = 0; n < 4; n++) {
		const one = await connect()
		opened.push(one)
		one.response.end(ANSWER)
		await eventually(() => opened.filter(({ response }) => !response.closed).length <= 2)
	}
	t.strictSame(
		opened.map(({ response }) => response.closed),
		[true, true, false, false],
	)
})
