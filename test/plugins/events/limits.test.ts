/** Limits of event streams over HTTP, for clients that are slow, numerous or quiet. */
import { once } from 'node:events'
import net from 'node:net'
import type { Socket } from 'node:net'
import t from 'tap'
import { openRun } from '../../../plugins/runs/run-log.ts'
import type { NewEvent } from '../../../core/protocol.ts'
import { addToken } from '../../support/add.ts'
import { startGateway } from '../../support/gateway.ts'
import type { TestGateway } from '../../support/gateway.ts'
import { assertError } from '../../support/error-response.ts'
import { openStream } from '../../support/sse.ts'
import type { StreamOptions, TestStream } from '../../support/sse.ts'
import { eventually } from '../../support/wait.ts'

/** A third-party plugin with a route that returns the number of open streams. */
const counter = `
export default {
	name: 'counter',
	needs: ['auth', 'events'],
	http(server, ctx) {
		server.route({ method: 'GET', path: '/streams', handler: () => ({ open: ctx.use('events').streams() }) })
	},
}
`
const files = { 'plugins/counter/index.js': counter }
const start = (settings: string): Promise<TestGateway> =>
	startGateway({ files, config: `plugins:\n  counter: true\n  events: {${settings}}\n`, madeUpEvents: true })

/** Emits many events of a run, and its end. */
async function flood({ running }: TestGateway, run_id: string, { count, bytes }: typeof much): Promise<void> {
	const log = await openRun(running.gateway.events, { run_id, agent_id: 'ada' })
	const text = 'x'.repeat(bytes)
	for (let n = 0; n < count;) {
		const some: NewEvent[] = []
		do some.push({ event_type: 'message.user', payload: { n, text } })
		while (++n < count && n % 10 > 0)
		await log.append(some)
	}
	await log.append([{ event_type: 'run.completed', payload: {} }])
	log.close()
}

/** More than the kernel buffers for one connection. */
const much = { count: 200, bytes: 64 * 1024 }

/** A client that requests the stream and then reads nothing. */
async function stalled(url: string): Promise<Socket> {
	const socket = net.connect(Number(new URL(url).port), '127.0.0.1')
	socket.pause()
	socket.on('error', () => {}) // the gateway disconnects it
	await once(socket, 'connect')
	socket.write('GET /v1/events/stream HTTP/1.1\r\nhost: localhost\r\n\r\n')
	return socket
}

void t.test(
	'a client that reads nothing is disconnected; others, and its next stream, receive everything',
	async (t) => {
		const gateway = await start('stall_timeout_s: 3')
		t.teardown(() => gateway.stop())
		const { url } = gateway
		const healthy = await openStream(url)
		const from = gateway.running.gateway.events.head()
		const bad = await stalled(url)
		await untilOpen(gateway, 2)

		await flood(gateway, 'r1', much)
		await healthy.waitFor('run.completed')
		t.strictSame(
			healthy.events.filter((event) => event.run_id === 'r1').map((event) => event.sequence),
			Array.from({ length: much.count + 1 }, (_, n) => n + 1),
		)
		await untilOpen(gateway, 1)
		// It reads what the kernel has buffered, and then the end, within an event.
		let bytes = 0
		bad.on('data', (data) => (bytes += data.length))
		bad.resume()
		await once(bad, 'close')
		t.ok(bytes < much.count * much.bytes)

		const again = await openStream(url, { lastEventId: from })
		await again.waitFor('run.completed')
		t.strictSame(again.ids, healthy.ids)
		again.close()
		healthy.close()
	},
)

void t.test('a client that falls behind receives everything in order', async (t) => {
	const gateway = await start('stall_timeout_s: 60')
	t.teardown(() => gateway.stop())
	const slow = await stalled(gateway.url)
	await untilOpen(gateway, 1)
	// It begins to read when all events are in the log. The kernel buffers less, so the rest comes from the log.
	await flood(gateway, 'r1', much)
	const parts: string[] = []
	slow.setEncoding('utf8').on('data', (part: string) => parts.push(part))
	slow.resume()
	while (!parts.slice(-2).join('').includes('run.completed')) await once(slow, 'data')
	const numbers = [...parts.join('').matchAll(/"payload":\{"n":(\d+)/g)].map((match) => Number(match[1]))
	t.strictSame(
		numbers,
		Array.from({ length: much.count }, (_, n) => n),
	)
	slow.destroy()
})

void t.test('max_streams limits open streams; the next request gets a Retry-After', async (t) => {
	const gateway = await start('max_streams: 2')
	t.teardown(() => gateway.stop())
	const { url } = gateway
	const [first, second] = [await openStream(url), await openStream(url)]
	const reply = await gateway.request('GET', '/v1/events/stream')
	assertError(t, reply, { status: 503, code: 'unavailable', message: /2 event streams are open/ })
	t.match(reply.headers.get('retry-after'), /^\d+$/)
	t.equal((await gateway.request('GET', '/v1/events/stream?last_event_id=none')).status, 503)
	first.close()
	await untilOpen(gateway, 1)
	const third = await openStream(url)
	t.equal(third.status, 200)
	for (const stream of [second, third]) stream.close()
})

void t.test('one token cannot use all streams', async (t) => {
	const gateway = await start('max_streams: 10')
	t.teardown(() => gateway.stop())
	const { token: one } = await addToken(gateway, ['events:read'])
	const { token: other } = await addToken(gateway, ['events:read'])
	const open: TestStream[] = []
	const next = async (options: StreamOptions): Promise<void> => void open.push(await openStream(gateway.url, options))
	for (let n = 0; n < 8; n++) await next({ token: one })
	const reply = await gateway.request('GET', '/v1/events/stream', { token: one })
	assertError(t, reply, {
		status: 429,
		code: 'rate_limited',
		message: /8 of 10 event streams are open with your token/,
	})
	t.match(reply.headers.get('retry-after'), /^\d+$/)
	await next({ token: other })
	await next({})
	t.strictSame(
		open.map(({ status }) => status),
		Array(10).fill(200),
	)
	for (const stream of open) stream.close()
	await untilOpen(gateway, 0)
	await next({ token: one })
	t.equal(open.at(-1)?.status, 200)
	open.at(-1)?.close()
})

void t.test('a quiet stream receives comments', async (t) => {
	const gateway = await start('heartbeat_s: 1')
	t.teardown(() => gateway.stop())
	const stream = await openStream(gateway.url, { query: { agent_id: 'quiet' } })
	await stream.until(() => stream.comments.length >= 3, 'two comments after the first')
	t.strictSame(stream.comments.slice(0, 3), ['connected', 'still here', 'still here'])
	t.strictSame(stream.events, [])
	stream.close()
})

void t.test('settings outside their range are refused, and the error names them', async (t) => {
	for (const setting of [
		'max_streams: 0',
		'heartbeat_s: 61',
		'stall_timeout_s: 0.5',
		'retention_days: never',
		'x: 1',
	]) {
		const name = setting.split(':')[0] ?? ''
		await t.rejects(start(setting), { code: 'config_invalid', message: new RegExp(name) }, setting)
	}
})

void t.test('a revoked token reads nothing more with requests that were pipelined before', async (t) => {
	const gateway = await start('max_streams: 10')
	t.teardown(() => gateway.stop())
	const made = await addToken(gateway, ['events:read'])
	const { socket, received } = await pipeline(gateway, made.token, 4)
	await eventually(received, (text) => text.includes(': connected'))
	await gateway.request('DELETE', `/v1/auth/tokens/${made.id}`)
	await eventually(received, (text) => text.split('HTTP/1.1 ').length === 5)
	t.strictSame(
		received().match(/(?<=HTTP\/1\.1 )\d+/g),
		['200', '401', '401', '401'],
		'the last three are answered once the first has ended, which is after the revocation',
	)
	socket.destroy()
	await untilOpen(gateway, 0)
})

void t.test('one connection has one stream at a time, however many it requests', async (t) => {
	const gateway = await start('max_streams: 2')
	t.teardown(() => gateway.stop())
	const made = await gateway.request('POST', '/v1/auth/tokens', { body: { scopes: ['events:read'] } })
	const { socket, received } = await pipeline(gateway, made.body.token, 4)
	await eventually(received, (text) => text.includes(': connected'))
	await untilOpen(gateway, 1)
	const other = await openStream(gateway.url)
	t.equal(other.status, 200)
	other.close()
	socket.destroy()
	await untilOpen(gateway, 0)
})

/** Requests `count` streams at once on one connection. `received` returns the data so far. */
async function pipeline(
	{ url }: TestGateway,
	token: string,
	count: number,
): Promise<{ socket: Socket; received(): string }> {
	const socket = net.connect(Number(new URL(url).port), '127.0.0.1')
	await once(socket, 'connect')
	let text = ''
	socket.setEncoding('utf8').on('data', (part: string) => (text += part))
	socket.write(
		`GET /v1/events/stream HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${token}\r\n\r\n`.repeat(count),
	)
	return { socket, received: () => text }
}

/** Waits until the gateway counts `count` open streams. */
async function untilOpen(gateway: TestGateway, count: number): Promise<void> {
	await eventually(
		async () => (await gateway.request('GET', '/streams')).body.open,
		(open) => open === count,
	)
}
