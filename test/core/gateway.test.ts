import t from 'tap'
import { startHost } from '../support/host.ts'

const world = globalThis as { diary?: string[]; release?: () => void }

/** A plugin that answers at /NAME and writes a diary of its life. */
const plugin = (name: string, extra = '', answer = '1'): string => `
export default {
	name: '${name}',
	config: (joi) => joi.object({ fail: joi.boolean().default(false), tag: joi.string().default('') }),
	async start(ctx) {
		globalThis.diary.push('start ${name}' + ctx.config.tag)
		ctx.defer(() => globalThis.diary.push('stop ${name}' + ctx.config.tag), 'diary')
		if (ctx.config.fail) throw new Error('${name} cannot')
		return { answer: '${answer}' + ctx.config.tag }
	},
	http: (server, ctx) => server.route({ method: 'GET', path: '/${name}', handler: () => ctx.find('${name}').answer }),
	${extra}
}
`

t.beforeEach(() => {
	world.diary = []
})

void t.test(
	'keeps what is unchanged, replaces what changed, and releases the old one after the new one serves',
	async (t) => {
		const host = await startHost(
			t.testdir(),
			{ 'a/index.js': plugin('a'), 'b/index.js': plugin('b') },
			{ a: {}, b: {} },
		)
		t.teardown(() => host.stop())
		t.strictSame(world.diary, ['start a', 'start b'])
		t.strictSame(await host.gateway.reload(), { changed: false, generation: 1 })

		host.want({ a: {}, b: { tag: '!' } })
		t.strictSame(await host.gateway.reload(), { changed: true, generation: 2 })
		t.strictSame(world.diary, ['start a', 'start b', 'start b!', 'stop b'])
		t.match(await host.get('/b'), { status: 200, body: '1!' })
		t.match(await host.get('/a'), { status: 200, body: '1' })

		host.want({ b: { tag: '!' } })
		await host.gateway.reload()
		t.equal((await host.get('/a')).status, 404)
		t.match(host.gateway.status.plugins(), [{ name: 'b', state: 'running', generation: 2 }])
	},
)

void t.test(
	'a change that fails to start leaves everything as it was, and what was started for it is released',
	async (t) => {
		const host = await startHost(t.testdir(), { 'a/index.js': plugin('a'), 'b/index.js': plugin('b') }, { a: {} })
		t.teardown(() => host.stop())
		host.want({ a: { tag: '2' }, b: { fail: true } })
		await t.rejects(host.gateway.reload(), { code: 'plugin_failed', message: /plugin "b" failed to start: b cannot/ })
		t.strictSame(world.diary, ['start a', 'start a2', 'start b', 'stop b', 'stop a2'])
		t.match(await host.get('/a'), { status: 200, body: '1' })
		t.equal(host.gateway.status.generation(), 1)
		t.match(host.gateway.status.configError(), /b cannot/)
	},
)

void t.test('an exclusive plugin stops before the new one starts, and comes back where that fails', async (t) => {
	const host = await startHost(t.testdir(), { 'x/index.js': plugin('x', 'exclusive: true,') }, { x: {} })
	t.teardown(() => host.stop())
	host.want({ x: { tag: '2' } })
	await host.gateway.reload()
	t.strictSame(world.diary, ['start x', 'stop x', 'start x2'])

	host.want({ x: { tag: '3', fail: true } })
	await t.rejects(host.gateway.reload(), /x cannot/)
	t.strictSame(world.diary?.slice(3), ['stop x2', 'start x3', 'stop x3', 'start x2'])
	t.match(await host.get('/x'), { status: 200, body: '12' }, 'its routes reach the instance that was started again')
})

void t.test('edited code is read anew, with every file of its folder; broken code is refused', async (t) => {
	const files = {
		'a/index.ts':
			"import { word } from './deep/word.ts'\nexport default { name: 'a', http: (server: any) => server.route({ method: 'GET', path: '/a', handler: () => word }) }\n",
		'a/deep/word.ts': "export const word: string = 'one'\n",
	}
	const host = await startHost(t.testdir(), files, { a: {} })
	t.teardown(() => host.stop())
	t.equal((await host.get('/a')).body, 'one')
	host.write('a/deep/word.ts', "export const word: string = 'two'\n")
	t.strictSame(await host.gateway.reload(), { changed: true, generation: 2 })
	t.equal((await host.get('/a')).body, 'two')

	host.write('a/deep/word.ts', 'export const word = (\n')
	t.strictSame(await host.gateway.reload(), { changed: false, generation: 2 })
	t.equal((await host.get('/a')).body, 'two')
	t.match(host.gateway.status.plugins(), [
		{ name: 'a', state: 'running', last_error: /does not load: .* \(word\.ts:1\)$/ },
	])

	host.write('a/deep/word.ts', "export const word: string = 'three'\n")
	await host.gateway.reload()
	t.equal((await host.get('/a')).body, 'three')
	t.match(host.gateway.status.plugins(), [{ last_error: null }])
})

void t.test('a request in flight ends in the generation that it began in', async (t) => {
	const slow = `export default { name: 'a', config: (joi) => joi.object({ tag: joi.string() }), http: (server, ctx) => server.route({ method: 'GET', path: '/a', handler: async () => {
		if (ctx.config.tag === 'old') await new Promise((resolve) => { globalThis.release = resolve })
		return ctx.config.tag
	} }) }`
	const host = await startHost(t.testdir(), { 'a/index.js': slow }, { a: { tag: 'old' } })
	t.teardown(() => host.stop())
	const first = host.get('/a')
	while (!world.release) await new Promise((resolve) => setImmediate(resolve))
	host.want({ a: { tag: 'new' } })
	await host.gateway.reload()
	t.equal((await host.get('/a')).body, 'new')
	world.release()
	t.match(await first, { status: 200, body: 'old' })
})

void t.test('while the gateway starts, a plugin that fails is left out alone, with those that need it', async (t) => {
	const files = {
		'good/index.js': plugin('good'),
		'bad/index.js': 'export default 7',
		'needy/index.js': plugin('needy', "needs: ['bad'],"),
		'sad/index.js': plugin('sad'),
	}
	const host = await startHost(t.testdir(), files, { good: {}, bad: {}, needy: {}, sad: { fail: true } })
	t.teardown(() => host.stop())
	t.match(host.gateway.status.plugins(), [
		{ name: 'bad', state: 'failed', last_error: /must default-export an object/ },
		{ name: 'good', state: 'running', last_error: null },
		{ name: 'needy', state: 'failed', last_error: /needs plugin "bad", which failed/ },
		{ name: 'sad', state: 'failed', last_error: /sad cannot/ },
	])
	t.equal((await host.get('/good')).status, 200)
})

void t.test('while the gateway starts, routes that do not fit leave their plugin out alone', async (t) => {
	const route = (name: string): string =>
		`export default { name: '${name}', http: (server) => server.route({ method: 'GET', path: '/same', handler: () => '${name}' }) }`
	const files = { 'a/index.js': plugin('a'), 'r1/index.js': route('r1'), 'r2/index.js': route('r2') }
	const host = await startHost(t.testdir(), files, { a: {}, r1: {}, r2: {} })
	t.teardown(() => host.stop())
	t.equal((await host.get('/same')).body, 'r1')
	t.equal((await host.get('/a')).status, 200)
	t.match(host.gateway.status.plugins(), [
		{ name: 'a' },
		{ name: 'r1' },
		{ name: 'r2', state: 'failed', last_error: /could not add its routes/ },
	])
})

void t.test('refuses wrong settings, double tools and double routes, naming the plugin', async (t) => {
	const tool = (name: string): string =>
		`export default { name: '${name}', start: (ctx) => ctx.primitive({ name: 'x.y', description: 'x', run: () => 1 }) }`
	const route = (name: string): string =>
		`export default { name: '${name}', http: (server) => server.route({ method: 'GET', path: '/same', handler: () => 1 }) }`
	const files = {
		'a/index.js': plugin('a'),
		't1/index.js': tool('t1'),
		't2/index.js': tool('t2'),
		'r1/index.js': route('r1'),
		'r2/index.js': route('r2'),
	}
	const host = await startHost(t.testdir(), files, { a: {} })
	t.teardown(() => host.stop())
	const refused = async (plugins: Record<string, object>, message: RegExp): Promise<void> => {
		host.want(plugins)
		await t.rejects(host.gateway.reload(), { message })
		t.equal(host.gateway.status.generation(), 1)
	}
	await refused({ a: { tagg: 1 } }, /plugins\.a\.tagg: tagg is not allowed/)
	await refused({ t1: {}, t2: {} }, /plugins "t1" and "t2" both offer the primitive x\.y/)
	await refused({ r1: {}, r2: {} }, /plugin "r2" could not add its routes/)
	await refused({ a: { fail: true } }, /a cannot/)
})

void t.test('what is said of a plugin is what is wrong with it now', async (t) => {
	const host = await startHost(t.testdir(), { 'a/index.js': plugin('a') }, { a: {} })
	t.teardown(() => host.stop())
	const trouble = (): unknown => host.gateway.status.plugins()[0]?.last_error
	host.write('a/index.js', 'export default {')
	await host.gateway.reload()
	t.match(trouble(), /does not load/)
	host.write('a/index.js', plugin('a'))
	host.want({ a: { tagg: 1 } })
	await t.rejects(host.gateway.reload(), { message: /plugins\.a\.tagg/ })
	t.match(trouble(), /plugins\.a\.tagg: tagg is not allowed/, 'not the code, which was mended')
	t.match(await host.get('/a'), { status: 200, body: '1' })
	host.want({ a: {} })
	await host.gateway.reload()
	t.equal(trouble(), null)
})

void t.test('says what is wrong with a plugin that is not made right', async (t) => {
	const host = await startHost(t.testdir(), { 'a/index.js': plugin('a') }, { a: {} })
	t.teardown(() => host.stop())
	const start = (body: string): string => `export default { name: 'b', start: (ctx) => { ${body} } }`
	for (const [code, settings, message] of [
		["export default { name: 'b', strat: () => {} }", {}, /"strat" is no part of a plugin; there are: name, version/],
		["export default { name: 'c' }", {}, /calls itself "c"/],
		["export default { name: 'b', start: 1 }", {}, /start must be a function/],
		["export default { name: 'b' }", { zone: 'x' }, /plugins\.b: the plugin takes no settings.*write b: true/],
		[
			start("ctx.primitive({ name: 'Now', description: 'x', run() {} })"),
			{},
			/the primitive "Now" needs a name such as clock\.now/,
		],
		[start("ctx.primitive({ name: 'b.now', run() {} })"), {}, /needs a description/],
		[start("ctx.primitive({ name: 'b.now', description: 'x' })"), {}, /needs a function run/],
	] as const) {
		host.write('b/index.js', code)
		host.want({ a: {}, b: settings })
		const refused = await host.gateway.reload().then(
			() => host.gateway.status.plugins().find((one) => one.name === 'b')?.last_error,
			(error: Error) => error.message,
		)
		t.match(refused, message)
		t.equal((await host.get('/a')).status, 200)
	}
})

void t.test('a hundred reloads leave one generation, and no instance behind', async (t) => {
	const host = await startHost(t.testdir(), { 'a/index.js': plugin('a') }, { a: {} })
	t.teardown(() => host.stop())
	for (let round = 1; round <= 100; round++) {
		host.want({ a: { tag: String(round) } })
		await Promise.all([host.gateway.reload(), host.gateway.reload(), host.get('/a')])
	}
	const diary = world.diary ?? []
	t.equal(host.gateway.status.generation(), 101)
	t.equal(diary.filter((line) => line.startsWith('start')).length, 101)
	t.equal((await host.get('/a')).body, '1100')
})

void t.test('extensions belong to the generation, and those who use them hear of each', async (t) => {
	const user = `
export default {
	name: 'user',
	start(ctx) {
		ctx.onGeneration(() => globalThis.diary.push(ctx.extensions('thing').map((one) => one.plugin + '=' + one.value).join()))
		ctx.onGeneration(() => { throw new Error('nobody else shall suffer') })
	},
}`
	const giver = (value: string): string => `
export default {
	name: 'giver',
	config: (joi) => joi.object({ tag: joi.string().default('') }),
	start: (ctx) => ctx.extend('thing', '${value}' + ctx.config.tag),
}`
	const host = await startHost(
		t.testdir(),
		{ 'user/index.js': user, 'giver/index.js': giver('1') },
		{ user: {}, giver: {} },
	)
	t.teardown(() => host.stop())
	host.want({ user: {}, giver: { tag: '!' } })
	await host.gateway.reload()
	host.want({ user: {} })
	await host.gateway.reload()
	t.strictSame(world.diary, ['giver=1', 'giver=1!', ''])
})

void t.test('a guard stands on every server that there is, before all routes', async (t) => {
	const guard = `
export default {
	name: 'guard',
	guard: (server) => server.ext('onPreHandler', (request, h) => h.response('stopped').code(418).takeover()),
}`
	const old = `
export default {
	name: 'old',
	legacy: (server) => server.route({ method: 'GET', path: '/old', handler: () => 'through' }),
}`
	const host = await startHost(
		t.testdir(),
		{ 'old/index.js': old, 'a/index.js': plugin('a'), 'guard/index.js': guard },
		{ old: {}, a: {} },
	)
	t.teardown(() => host.stop())
	const legacy = async (): Promise<number> => (await fetch(`${host.gateway.status.url('legacy')}/old`)).status
	t.equal((await host.get('/a')).status, 200)
	t.equal(await legacy(), 200)
	host.want({ old: {}, a: {}, guard: {} })
	await host.gateway.reload()
	t.equal((await host.get('/a')).status, 418)
	t.equal(await legacy(), 418)
})
