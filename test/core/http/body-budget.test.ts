import { once } from 'node:events'
import net from 'node:net'
import t from 'tap'
import { BUDGET_BYTES } from '../../../core/http/body-budget.ts'
import { startHost } from '../../support/host.ts'
import { eventually } from '../../support/wait.ts'

const MIB = 1024 * 1024
const SHARE = 32 * MIB
const bodyOf = (length: number): Buffer<ArrayBuffer> => Buffer.from(JSON.stringify({ text: 'a'.repeat(length) }))
const large = bodyOf(MIB)
/** Built once, since that takes longer than to send it. */
const largest = bodyOf(30 * MIB)

/** Its routes accept bodies of 32 MiB, except those under /ordinary, and respond or stay open. */
const plugin = `import { bodyUsed } from ${JSON.stringify(new URL('../../../core/http/body-budget.ts', import.meta.url).href)}
export default { name: 'reader', http(server) {
	const route = (path, handler) => server.route({ method: 'POST', path, handler, options: { payload: { maxBytes: ${SHARE} } } })
	route('/at-once', () => 'done')
	server.route({ method: 'POST', path: '/ordinary', handler: () => 'done' })
	server.route({ method: 'POST', path: '/ordinary/held', handler: (request, h) => (request.raw.res.write('open'), h.abandon) })
	route('/fail', () => { throw new Error('broken') })
	route('/stream', (request, h) => (bodyUsed(request), bodyUsed(request), request.raw.res.write('open'), h.abandon))
} }`

void t.test('large bodies share a budget of bytes, which is released however a request ends', async (t) => {
	const host = await startHost(t.testdir(), { 'reader/index.js': plugin }, { reader: {} })
	t.teardown(() => host.stop())
	const { port } = new URL(host.gateway.status.url('main') ?? '')

	/** Sends the beginning of a body that never ends. */
	const begin = async (headers: string, path = '/at-once'): Promise<net.Socket> => {
		const socket = net.connect(Number(port), '127.0.0.1')
		socket.on('error', () => {})
		await once(socket, 'connect')
		socket.write(`POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n${headers}\r\n\r\n`)
		return socket
	}
	const post = (path: string, body: Buffer<ArrayBuffer>): Promise<Response> =>
		fetch(host.gateway.status.url('main') + path, {
			method: 'POST',
			headers: { 'content-type': 'application/json' },
			body,
		})
	const fill = (headers: string): Promise<net.Socket[]> =>
		Promise.all(Array.from({ length: BUDGET_BYTES / SHARE }, () => begin(headers)))

	for (const headers of [
		`Content-Length: ${SHARE}`,
		'Transfer-Encoding: chunked',
		'Content-Length: 9\r\nContent-Encoding: gzip',
	]) {
		const sockets = await fill(headers)
		const refused = await post('/at-once', large)
		t.equal(refused.status, 503, `no room beside ${headers}`)
		t.equal(refused.headers.get('retry-after'), '2')
		t.match(await refused.json(), { code: 'unavailable' })
		t.equal((await post('/at-once', bodyOf(1000))).status, 200, 'small bodies are not counted')
		const waiting = post('/at-once', large)
		for (const socket of sockets) socket.resetAndDestroy()
		t.equal((await waiting).status, 200, 'a waiting request gets the share of an aborted one')
	}
	// In total more than the budget: each releases its share.
	for (let bytes = 0; bytes <= BUDGET_BYTES; bytes += largest.length) {
		t.equal((await post('/fail', largest)).status, 500)
		const stream = await post('/stream', largest)
		t.equal(stream.status, 200)
		t.teardown(() => stream.body?.cancel())
	}
	const refused = await fill(`Content-Length: ${SHARE + 1}`)
	t.equal((await post('/at-once', large)).status, 200, 'a body over the limit takes no share')
	for (const socket of refused) socket.resetAndDestroy()

	// Only one share is left, so that the rest of the test needs less data.
	const occupied = await fill(`Content-Length: ${SHARE}`)
	occupied.pop()?.resetAndDestroy()
	const half = bodyOf(MIB / 2)
	const slow = Array.from({ length: SHARE / MIB }, () => begin(`Content-Length: ${MIB}`, '/ordinary'))
	await eventually(async () => (await post('/ordinary', half)).status === 503)
	t.pass('bodies within the ordinary limit count while they are read')
	t.equal((await post('/ordinary', bodyOf(1000))).status, 200)
	const waiting = post('/ordinary', half)
	for (const socket of slow) (await socket).resetAndDestroy()
	t.equal((await waiting).status, 200)

	const statuses = new Set<number>()
	for (let bytes = 0; bytes <= SHARE; bytes += half.length) {
		const held = await post('/ordinary/held', half)
		statuses.add(held.status)
		t.teardown(() => held.body?.cancel())
	}
	t.same([...statuses], [200], 'they do not count while a response is sent')

	const chunk = `${(MIB - 1000).toString(16)}\r\n${'a'.repeat(MIB - 1000)}`
	const ended = Promise.withResolvers<void>()
	for (let count = 0; count <= SHARE / MIB; count++) {
		const socket = await begin('Transfer-Encoding: chunked', '/ordinary')
		socket.on('close', () => ended.resolve()).write(chunk)
		t.teardown(() => socket.destroy())
	}
	await ended.promise
	t.pass('a body of unknown length is cut off when the budget is used up')
	for (const socket of occupied) socket.destroy()
})
