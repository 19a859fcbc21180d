import { once } from 'node:events'
import net from 'node:net'
import t from 'tap'
import { startHost } from '../support/host.ts'

const upgrade = 'GET /x HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n'

void t.test('clients that ask for an upgrade and go at once do no harm', async (t) => {
	const host = await startHost(t.testdir(), {}, {})
	t.teardown(() => host.stop())
	const { port } = new URL(host.gateway.status.url('main') ?? '')
	for (let round = 0; round < 100; round++) {
		const socket = net.connect(Number(port), '127.0.0.1')
		await once(socket, 'connect')
		socket.write(upgrade + 'A'.repeat(round * 100))
		socket.resetAndDestroy()
	}
	t.equal((await host.get('/nothing')).status, 404, 'it still answers')
})

void t.test('an upgrade that no plugin takes is answered', async (t) => {
	const host = await startHost(t.testdir(), {}, {})
	t.teardown(() => host.stop())
	const { port } = new URL(host.gateway.status.url('main') ?? '')
	const socket = net.connect(Number(port), '127.0.0.1')
	socket.write(upgrade)
	const [data] = (await once(socket, 'data')) as [Buffer]
	t.match(data.toString(), /^HTTP\/1\.1 404 Not Found\r\n.*"code":"not_found"/s)
	socket.destroy()
})

void t.test('upgraded sockets whose clients stay do not hold up the end', async (t) => {
	const taker = `export default { name: 'taker', start(ctx) {
		ctx.upgrade('main', '/taken', (request, socket) => socket.write('taken'))
	} }`
	const host = await startHost(t.testdir(), { 'taker/index.js': taker }, { taker: {} })
	const { port } = new URL(host.gateway.status.url('main') ?? '')
	for (const path of ['/x', '/taken']) {
		const socket = net.connect({ port: Number(port), host: '127.0.0.1', allowHalfOpen: true })
		t.teardown(() => socket.destroy())
		socket.write(upgrade.replace('/x', path))
		await once(socket, 'data')
	}
	await host.stop()
	t.pass('it has come to its end')
})
