/** Extensions and handlers that a plugin adds while it serves: the host caches those that it found before. */
import t from 'tap'
import { startHost } from '../../support/host.ts'

const late = `export default { name: 'late',
	start(ctx) {
		const heard = []
		return { heard, add(n) {
			ctx.extend('words', 'word ' + n)
			ctx.on('late.said', () => heard.push(n))
		} }
	},
	http(server, ctx, service) {
		server.route({ method: 'GET', path: '/words', handler: () => ctx.extensions('words').map(({ value }) => value) })
		server.route({ method: 'GET', path: '/reversed', handler: () => ctx.extensions('words').reverse().map(({ value }) => value) })
		server.route({ method: 'GET', path: '/heard', handler: () => service.heard.toSorted() })
		server.route({ method: 'GET', path: '/add/{n}', handler: ({ params }) => (service.add(Number(params.n)), 'added') })
		server.route({ method: 'GET', path: '/say', handler: async () => {
			await ctx.emit({ event_type: 'late.said', payload: {} })
			await ctx.emit({ event_type: 'late.other', payload: {} })
			return 'said'
		} })
	} }`

void t.test('extensions and handlers that are added later are found, and those of other names are not', async (t) => {
	const host = await startHost(t.testdir(), { 'late/index.js': late }, { late: {} })
	t.teardown(() => host.stop())
	const words = async () => JSON.parse((await host.get('/words')).body) as unknown
	const heard = async () => JSON.parse((await host.get('/heard')).body) as unknown
	t.strictSame(await words(), [])
	await host.get('/say')
	t.strictSame(await heard(), [])
	await host.get('/add/1')
	t.strictSame(await words(), ['word 1'])
	await host.get('/say')
	t.strictSame(await heard(), [1])
	await host.get('/add/2')
	t.strictSame(await words(), ['word 1', 'word 2'])
	const reversed = JSON.parse((await host.get('/reversed')).body) as unknown
	t.strictSame(reversed, ['word 2', 'word 1'])
	t.strictSame(await words(), ['word 1', 'word 2'], 'what a plugin does to its list concerns nobody else')
	await host.get('/say')
	t.strictSame(await heard(), [1, 1, 2])
})
