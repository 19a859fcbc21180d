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
/** Made once: it takes longer to make than to send. */
const largest = bodyOf(30 * MIB)

/** Its route takes bodies of 32 MiB and answers when it is released. */
const plugin = `import { bodyUsed } from ${JSON.stringify(new URL('../../../core/http/body-budget.ts', import.meta.url).href)}
export default { name: 'taker', http(server) {
	const route = (path, handler) => server.route({ method: 'POST', path, handler, options: { payload: { maxBytes: ${SHARE} } } })
	route('/at-once', () => 'taken')
	server.route({ method: 'POST', path: '/ordinary', handler: () => 'taken' })
	server.route({ method: 'POST', path: '/ordinary/held', handler: (request, h) => (request.raw.res.write('open'), h.abandon) })
	route('/fail', () => { throw new Error('broken') })
	route('/stream', (request, h) => (bodyUsed(request), bodyUsed(request), request.raw.res.write('open'), h.abandon))
} }`

void t.test('large bodies share a budget of bytes, which is given back however a request ends', async (t) => {
	const host = await startHost(t.testdir(), { 'taker/index.js': plugin }, { taker: {} })
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
		const waits = post('/at-once', large)
		for (const socket of sockets) socket.resetAndDestroy()
		t.equal((await waits).status, 200, 'one that waits gets the share of an aborted request')
	}
	// More than the budget in a row: each gives its share back.
	for (let taken = 0; taken <= BUDGET_BYTES; taken += largest.length) {
		t.equal((await post('/fail', largest)).status, 500)
		const stream = await post('/stream', largest)
		t.equal(stream.status, 200)
		t.teardown(() => stream.body?.cancel())
	}
	const refused = await fill(`Content-Length: ${SHARE + 1}`)
	t.equal((await post('/at-once', large)).status, 200, 'a body over the limit takes no share')
	for (const socket of refused) socket.resetAndDestroy()

	// All but one share is taken: the rest needs less data.
	const taken = await fill(`Content-Length: ${SHARE}`)
	taken.pop()?.resetAndDestroy()
	const half = bodyOf(MIB / 2)
	const slow = Array.from({ length: SHARE / MIB }, () => begin(`Content-Length: ${MIB}`, '/ordinary'))
	await eventually(async () => (await post('/ordinary', half)).status === 503)
	t.pass('bodies within the ordinary limit count while they are read')
	t.equal((await post('/ordinary', bodyOf(1000))).status, 200)
	const waits = post('/ordinary', half)
	for (const socket of slow) (await socket).resetAndDestroy()
	t.equal((await waits).status, 200)

	const statuses = new Set<number>()
	for (let bytes = 0; bytes <= SHARE; bytes += half.length) {
		const held = await post('/ordinary/held', half)
		statuses.add(held.status)
		t.teardown(() => held.body?.cancel())
	}
	t.same([...statuses], [200], 'not while they are answered')

	const chunk = `${(MIB - 1000).toString(16)}\r\n${'a'.repeat(MIB - 1000)}`
	const ended = Promise.withResolvers<void>()
	for (let count = 0; count <= SHARE / MIB; count++) {
		const socket = await begin('Transfer-Encoding: chunked', '/ordinary')
		socket.on('close', () => ended.resolve()).write(chunk)
		t.teardown(() => socket.destroy())
	}
	await ended.promise
	t.pass('one of unknown length ends where there is no room')
	for (const socket of taken) socket.destroy()
})
