/** Extensions and handlers that a plugin adds while it serves. The host caches those that it found earlier. */
import t from 'tap'
import { startHost } from '../../support/host.ts'

const late = `export default { name: 'late',
	start(ctx) {
		const received = []
		return { received, add(n) {
			ctx.extend('words', 'word ' + n)
			ctx.on('late.said', () => received.push(n))
		} }
	},
	http(server, ctx, service) {
		server.route({ method: 'GET', path: '/words', handler: () => ctx.extensions('words').map(({ value }) => value) })
		server.route({ method: 'GET', path: '/reversed', handler: () => ctx.extensions('words').reverse().map(({ value }) => value) })
		server.route({ method: 'GET', path: '/received', handler: () => service.received.toSorted() })
		server.route({ method: 'GET', path: '/add/{n}', handler: ({ params }) => (service.add(Number(params.n)), 'added') })
		server.route({ method: 'GET', path: '/say', handler: async () => {
			await ctx.emit({ event_type: 'late.said', payload: {} })
			await ctx.emit({ event_type: 'late.other', payload: {} })
			return 'said'
		} })
	} }`

void t.test('extensions and handlers that are added later are found by their names', async (t) => {
	const host = await startHost(t.testdir(), { 'late/index.js': late }, { late: {} })
	t.teardown(() => host.stop())
	const words = async () => JSON.parse((await host.get('/words')).body) as unknown
	const received = async () => JSON.parse((await host.get('/received')).body) as unknown
	t.strictSame(await words(), [])
	await host.get('/say')
	t.strictSame(await received(), [])
	await host.get('/add/1')
	t.strictSame(await words(), ['word 1'])
	await host.get('/say')
	t.strictSame(await received(), [1])
	await host.get('/add/2')
	t.strictSame(await words(), ['word 1', 'word 2'])
	const reversed = JSON.parse((await host.get('/reversed')).body) as unknown
	t.strictSame(reversed, ['word 2', 'word 1'])
	t.strictSame(await words(), ['word 1', 'word 2'], 'each caller gets its own array')
	await host.get('/say')
	t.strictSame(await received(), [1, 1, 2])
})
