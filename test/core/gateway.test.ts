import { chmodSync, existsSync, mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { makeHome, startGateway } from '../support/gateway.ts'
import { startHost } from '../support/host.ts'
import { canMount, smallDisk } from '../support/small-disk.ts'
import { eventually } from '../support/wait.ts'

/** Written and read by the code of the plugins, which runs in this process. */
const shared = globalThis as {
	journal?: string[]
	broken?: boolean
	release?: () => void
	loaded?: string[]
	failed?: string[]
	started?: string[]
	packed?: number
}

/** A plugin with a route at /NAME that records its starts and stops. */
const plugin = (name: string, extra = '', answer = '1'): string => `
export default {
	name: '${name}',
	config: (joi) => joi.object({ fail: joi.boolean().default(false), tag: joi.string().default('') }),
	async start(ctx) {
		globalThis.journal.push('start ${name}' + ctx.config.tag)
		ctx.defer(() => globalThis.journal.push('stop ${name}' + ctx.config.tag), 'journal')
		if (ctx.config.fail) throw new Error('${name} cannot')
		return { answer: '${answer}' + ctx.config.tag }
	},
	http: (server, ctx) => server.route({ method: 'GET', path: '/${name}', handler: () => ctx.find('${name}').answer }),
	${extra}
}
`

t.beforeEach(() => {
	shared.journal = []
})

void t.test('a reload keeps unchanged instances, and releases a replaced one after the new one serves', async (t) => {
	const host = await startHost(t.testdir(), { 'a/index.js': plugin('a'), 'b/index.js': plugin('b') }, { a: {}, b: {} })
	t.teardown(() => host.stop())
	t.strictSame(shared.journal, ['start a', 'start b'])
	await host.gateway.reload()
	t.equal(host.gateway.status.generation(), 1)

	host.want({ a: {}, b: { tag: '!' } })
	await host.gateway.reload()
	t.equal(host.gateway.status.generation(), 2)
	t.strictSame(shared.journal, ['start a', 'start b', 'start b!', 'stop b'])
	t.match(await host.get('/b'), { status: 200, body: '1!' })
	t.match(await host.get('/a'), { status: 200, body: '1' })

	host.want({ b: { tag: '!' } })
	await host.gateway.reload()
	t.equal((await host.get('/a')).status, 404)
	t.match(host.gateway.status.plugins(), [{ name: 'b', state: 'running', generation: 2 }])
})

void t.test('a plugin that does not start is reported, and the other changes apply', async (t) => {
	const files = {
		'a/index.js': plugin('a'),
		'b/index.js': plugin('b'),
		'needy/index.js': plugin('needy', "needs: ['b'],"),
	}
	const host = await startHost(t.testdir(), files, { a: {} })
	t.teardown(() => host.stop())
	const failed: unknown[] = []
	host.gateway.events.subscribe({}, ({ event }) => event.event_type === 'plugin.failed' && failed.push(event.payload))
	host.want({ a: { tag: '2' }, b: { fail: true }, needy: {} })
	await host.gateway.reload()
	t.equal(host.gateway.status.generation(), 2)
	t.strictSame(
		shared.journal,
		['start a', 'start a2', 'start b', 'stop b', 'stop a'],
		'what b has acquired is released',
	)
	t.match(await host.get('/a'), { status: 200, body: '12' })
	t.equal(host.gateway.status.configError(), null)
	const status = [
		{ name: 'a', state: 'running', last_error: null },
		{ name: 'b', state: 'failed', last_error: /plugin "b" failed to start: b cannot/ },
		{ name: 'needy', state: 'failed', last_error: /needs plugin "b", which failed/ },
	]
	t.match(host.gateway.status.plugins(), status)
	await host.gateway.reload()
	t.match(host.gateway.status.plugins(), status)
	t.match(failed, [{ plugin: 'b' }, { plugin: 'needy' }], 'each is reported once')
	t.equal(failed.length, 2)

	host.want({ a: { tag: '2' }, b: {}, needy: {} })
	await host.gateway.reload()
	t.equal((await host.get('/needy')).status, 200)
	t.ok(host.gateway.status.plugins().every(({ last_error }) => last_error === null))
})

void t.test('an instance keeps running if its successor does not start', async (t) => {
	const files = { 'b/index.js': plugin('b'), 'needy/index.js': plugin('needy', "needs: ['b'],") }
	const host = await startHost(t.testdir(), files, { b: {}, needy: {} })
	t.teardown(() => host.stop())
	host.want({ b: { fail: true, tag: '2' }, needy: { tag: '2' } })
	await host.gateway.reload()
	t.match(await host.get('/b'), { status: 200, body: '1' })
	t.match(await host.get('/needy'), { status: 200, body: '12' })
	t.match(host.gateway.status.plugins(), [
		{ name: 'b', state: 'running', last_error: /b cannot/ },
		{ name: 'needy', state: 'running', last_error: null },
	])
	host.want({ b: {}, needy: { tag: '2' } })
	await host.gateway.reload()
	t.match(host.gateway.status.plugins(), [{ last_error: null }, { last_error: null }])
})

void t.test('an exclusive plugin stops before its successor starts, and restarts if that fails', async (t) => {
	const host = await startHost(t.testdir(), { 'x/index.js': plugin('x', 'exclusive: true,') }, { x: {} })
	t.teardown(() => host.stop())
	host.want({ x: { tag: '2' } })
	await host.gateway.reload()
	t.strictSame(shared.journal, ['start x', 'stop x', 'start x2'])

	host.want({ x: { tag: '3', fail: true } })
	await host.gateway.reload()
	t.strictSame(shared.journal?.slice(3), ['stop x2', 'start x3', 'stop x3', 'start x2'])
	t.match(await host.get('/x'), { status: 200, body: '12' }, 'its routes reach the restarted instance')
	t.match(host.gateway.status.plugins(), [{ name: 'x', state: 'running', last_error: /x cannot/ }])
})

void t.test('when an exclusive plugin does not restart, plugins that need it stop too', async (t) => {
	const files = {
		'x/index.js': plugin('x', 'exclusive: true,').replace('ctx.config.fail', 'ctx.config.fail || globalThis.broken'),
		'needy/index.js': plugin('needy', "needs: ['x'],"),
		'a/index.js': plugin('a'),
	}
	const host = await startHost(t.testdir(), files, { x: {}, needy: {}, a: {} })
	t.teardown(() => host.stop())
	t.teardown(() => delete shared.broken)
	shared.broken = true
	host.want({ x: { tag: '2' }, needy: {}, a: {} })
	await host.gateway.reload()
	t.equal((await host.get('/a')).status, 200)
	t.equal((await host.get('/needy')).status, 404)
	t.match(host.gateway.status.plugins(), [
		{ name: 'a', state: 'running' },
		{ name: 'needy', state: 'failed', last_error: /needs plugin "x", which failed/ },
		{ name: 'x', state: 'failed', last_error: /x cannot/ },
	])
	t.ok(shared.journal?.includes('stop needy'))
})

void t.test('edited code is reloaded with every file of its folder, and broken code is refused', async (t) => {
	const files = {
		'a/index.ts':
			"import { word } from './deep/word.ts'\nexport default { name: 'a', http: (server: any) => server.route({ method: 'GET', path: '/a', handler: () => word }) }\n",
		'a/deep/word.ts': "export const word: string = 'one'\n",
	}
	const host = await startHost(t.testdir(), files, { a: {} })
	t.teardown(() => host.stop())
	t.equal((await host.get('/a')).body, 'one')
	host.write('a/deep/word.ts', "export const word: string = 'two'\n")
	await host.gateway.reload()
	t.equal(host.gateway.status.generation(), 2)
	t.equal((await host.get('/a')).body, 'two')

	host.write('a/deep/word.ts', 'export const word = (\n')
	await host.gateway.reload()
	t.equal(host.gateway.status.generation(), 2)
	t.equal((await host.get('/a')).body, 'two')
	t.match(host.gateway.status.plugins(), [
		{ name: 'a', state: 'running', last_error: /does not load: .* \(word\.ts:1\)$/ },
	])

	host.write('a/deep/word.ts', "export const word: string = 'three'\n")
	await host.gateway.reload()
	t.equal((await host.get('/a')).body, 'three')
	t.match(host.gateway.status.plugins(), [{ last_error: null }])
})

void t.test('edited CommonJS code is reloaded with the files that it requires', async (t) => {
	const files = {
		'a/package.json': '{"type": "commonjs"}',
		'a/index.js': "module.exports = require('./lib')",
		'a/lib.js':
			"const word = require('./deep/word')\nmodule.exports = { name: 'a', http: (server) => server.route({ method: 'GET', path: '/a', handler: () => word + require('packed') }) }\n",
		'a/deep/word.js': "module.exports = 'one'\n",
		'a/node_modules/packed/index.js': "globalThis.packed = (globalThis.packed ?? 0) + 1\nmodule.exports = '!'\n",
	}
	const host = await startHost(t.testdir(), files, { a: {} })
	t.teardown(() => host.stop())
	t.equal((await host.get('/a')).body, 'one!')
	host.write('a/deep/word.js', "module.exports = 'two'\n")
	await host.gateway.reload()
	t.equal((await host.get('/a')).body, 'two!')
	host.write('a/lib.js', files['a/lib.js'].replace('=> word', "=> 'new ' + word"))
	await host.gateway.reload()
	t.equal((await host.get('/a')).body, 'new two!')
	t.equal(shared.packed, 1, 'its packages are not reloaded')
	delete shared.packed
})

void t.test('CommonJS and JSON files that an ES module imports are reloaded', async (t) => {
	const files = {
		'a/index.js': `import { createRequire } from 'node:module'
import word from './word.cjs'
import { deep } from './reexported.cjs'
const { version } = createRequire(import.meta.url)('./package.json')
export default {
	name: 'a',
	http: (server) => server.route({ method: 'GET', path: '/a', handler: () => [word, deep, version].join() }),
}`,
		'a/word.cjs': "module.exports = require('./deep.cjs').deep\n",
		'a/reexported.cjs': "module.exports = require('./deep.cjs')\n",
		'a/deep.cjs': "exports.deep = 'one'\n",
		'a/package.json': '{"type": "module", "version": "one"}',
	}
	const host = await startHost(t.testdir(), files, { a: {} })
	t.teardown(() => host.stop())
	t.equal((await host.get('/a')).body, 'one,one,one')
	const edit = async (word: string): Promise<void> => {
		for (const name of ['a/deep.cjs', 'a/package.json'] as const) host.write(name, files[name].replace('one', word))
		await host.gateway.reload()
		t.equal((await host.get('/a')).body, `${word},${word},${word}`)
	}
	await edit('two')
	await edit('three')
	host.write('a/deep.cjs', "exports.deep = ''\nthrow new Error('no depth')\n")
	await host.gateway.reload()
	t.match(host.gateway.status.plugins(), [{ state: 'running', last_error: /does not load: no depth/ }])
	await edit('four')
})

void t.test('a plugin below node_modules is reloaded with every file of its folder', async (t) => {
	const files = {
		'a/index.js':
			"import { word } from './word.js'\nexport default { name: 'a', http: (server) => server.route({ method: 'GET', path: '/a', handler: () => word }) }\n",
		'a/word.js': "export const word = 'one'\n",
	}
	const host = await startHost(join(t.testdir(), 'node_modules'), files, { a: {} })
	t.teardown(() => host.stop())
	t.equal((await host.get('/a')).body, 'one')
	host.write('a/word.js', "export const word = 'two'\n")
	await host.gateway.reload()
	t.equal((await host.get('/a')).body, 'two')
})

void t.test('packages of a plugin are reloaded only after an installation', async (t) => {
	shared.loaded = []
	t.teardown(() => delete shared.loaded)
	const files = {
		'a/index.js':
			"import { inner } from 'packed'\nexport default { name: 'a', http: (server) => server.route({ method: 'GET', path: '/a', handler: () => inner }) }\n",
		'a/node_modules/packed/package.json': '{"type": "module", "main": "index.js"}',
		'a/node_modules/packed/index.js': "export { inner } from './inner.js'",
	}
	const host = await startHost(t.testdir(), files, {})
	t.teardown(() => host.stop())
	const install = (version: string): void => {
		const code = `globalThis.loaded.push('${version}'); export const inner = '${version}'`
		host.write('a/node_modules/packed/inner.js', code)
		host.write('a/node_modules/.package-lock.json', JSON.stringify({ version }))
	}
	host.want({ a: {} })
	for (const version of ['one', 'two']) {
		install(version)
		await host.gateway.reload()
		t.equal((await host.get('/a')).body, version)
		host.write('a/other.js', `// an edit of ${version}`)
		await host.gateway.reload()
		t.equal((await host.get('/a')).body, version)
	}
	t.strictSame(shared.loaded, ['one', 'two'], 'an edit does not reload packages')
	t.equal(host.gateway.status.plugins()[0]?.last_error, null)
})

void t.test('CommonJS packages are not reloaded, and the status asks for a restart', async (t) => {
	const files = {
		'a/index.js':
			"import inner from 'packed'\nexport default { name: 'a', http: (server) => server.route({ method: 'GET', path: '/a', handler: () => inner }) }\n",
		'a/node_modules/packed/index.js': "module.exports = require('./inner')",
		'a/node_modules/packed/package.json': '{"type": "commonjs"}',
	}
	const host = await startHost(t.testdir(), files, {})
	t.teardown(() => host.stop())
	host.want({ a: {} })
	for (const version of ['one', 'two']) {
		host.write('a/node_modules/packed/inner.js', `module.exports = '${version}'`)
		host.write('a/node_modules/.package-lock.json', JSON.stringify({ version }))
		await host.gateway.reload()
		t.equal((await host.get('/a')).body, 'one')
	}
	t.match(host.gateway.status.plugins(), [{ state: 'running', last_error: /packages were installed.*restart/ }])
	for (const [code, problem] of [
		['export default { name: "a" }; inner.added()', 'does not load'],
		['export default { name: "a", start: () => inner.added() }', 'failed to start'],
	] as const) {
		host.write('a/index.js', `import inner from 'packed'\n${code}`)
		await host.gateway.reload()
		const last_error = new RegExp(`${problem}: inner.added is not a function.*packages were installed.*restart`)
		t.match(host.gateway.status.plugins(), [{ state: 'running', last_error }])
	}
})

void t.test('a request in progress ends in the generation in which it began', async (t) => {
	const slow = `export default { name: 'a', config: (joi) => joi.object({ tag: joi.string() }), http: (server, ctx) => server.route({ method: 'GET', path: '/a', handler: async () => {
		if (ctx.config.tag === 'old') await new Promise((resolve) => { globalThis.release = resolve })
		return ctx.config.tag
	} }) }`
	const host = await startHost(t.testdir(), { 'a/index.js': slow }, { a: { tag: 'old' } })
	t.teardown(() => host.stop())
	const first = host.get('/a')
	while (!shared.release) await new Promise((resolve) => setImmediate(resolve))
	host.want({ a: { tag: 'new' } })
	await host.gateway.reload()
	t.equal((await host.get('/a')).body, 'new')
	shared.release()
	t.match(await first, { status: 200, body: 'old' })
})

void t.test('at the start, a plugin that fails does not run, nor do those that need it', async (t) => {
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

void t.test('at the start, conflicting routes prevent only their plugin', async (t) => {
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

void t.test('invalid settings are refused; conflicting tools and routes prevent only the new plugin', async (t) => {
	const tool = (name: string): string =>
		`export default { name: '${name}', start: (ctx) => ctx.primitive({ name: 'x.y', description: 'x', run: () => 1 }) }`
	const route = (name: string): string =>
		`export default { name: '${name}', http: (server) => server.route({ method: 'GET', path: '/same', handler: () => '${name}' }) }`
	const files = {
		'a/index.js': plugin('a'),
		't1/index.js': tool('t1'),
		't2/index.js': tool('t2'),
		'r1/index.js': route('r1'),
		'r2/index.js': route('r2'),
	}
	const host = await startHost(t.testdir(), files, { a: {}, r2: {} })
	t.teardown(() => host.stop())
	host.want({ a: { tagg: 1 }, r2: {} })
	await t.rejects(host.gateway.reload(), { message: /plugins\.a\.tagg: is not a known setting; did you mean "tag"\?/ })
	t.equal(host.gateway.status.generation(), 1)

	host.want({ a: { tag: '2' }, t1: {}, t2: {}, r1: {}, r2: {} })
	await host.gateway.reload()
	t.equal((await host.get('/same')).body, 'r2', 'the running plugin takes precedence')
	t.equal((await host.get('/a')).body, '12')
	t.match(host.gateway.status.plugins(), [
		{ name: 'a', state: 'running', last_error: null },
		{ name: 'r1', state: 'failed', last_error: /plugin "r1" could not add its routes/ },
		{ name: 'r2', state: 'running', last_error: null },
		{ name: 't1', state: 'running', last_error: null },
		{ name: 't2', state: 'failed', last_error: /both offer the primitive x\.y/ },
	])
})

void t.test('dangling links do not prevent a plugin from running', async (t) => {
	const folder = t.testdir({ linked: {} })
	symlinkSync('nowhere', join(folder, 'linked/dangling'))
	symlinkSync('loop', join(folder, 'linked/loop'))
	const host = await startHost(folder, { 'linked/index.js': plugin('linked') }, { linked: {} })
	t.teardown(() => host.stop())
	t.match(await host.get('/linked'), { status: 200, body: '1' })
})

void t.test('a setting may be bytes', async (t) => {
	const code = `export default {
		name: 'bytes',
		config: (joi) => joi.object({ salt: joi.binary().encoding('base64') }),
		http: (server, ctx) => server.route({ method: 'GET', path: '/salt', handler: () => ctx.config.salt.toString() }),
	}`
	const host = await startHost(t.testdir(), { 'bytes/index.js': code }, { bytes: { salt: 'c2FsdA==' } })
	t.teardown(() => host.stop())
	t.match(await host.get('/salt'), { status: 200, body: 'salt' })
})

void t.test('a plugin with conflicts is reported once, not at each reload of others', async (t) => {
	shared.failed = []
	t.teardown(() => delete shared.failed)
	const listener =
		"export default { name: 'listener', start: (ctx) => ctx.on('plugin.failed', ({ payload }) => globalThis.failed.push(payload.plugin)) }"
	const files = {
		'listener/index.js': listener,
		'a/index.js': plugin('a'),
		'late/index.js': plugin('late').replace("'/late'", "'/a'"),
		'other/index.js': plugin('other'),
	}
	const host = await startHost(t.testdir(), files, { listener: {}, a: {}, other: {} })
	t.teardown(() => host.stop())
	for (const tag of ['1', '2', '3']) {
		host.want({ listener: {}, a: {}, late: {}, other: { tag } })
		await host.gateway.reload()
		t.equal((await host.get('/other')).body, `1${tag}`)
		const late = host.gateway.status.plugins().find(({ name }) => name === 'late')
		t.match(late, { state: 'failed', last_error: /routes.*conflicts/ })
	}
	host.want({ listener: {}, a: { fail: true }, late: {}, other: { tag: '3' } })
	await host.gateway.reload()
	await eventually(() => shared.failed?.includes('a'))
	t.strictSame(shared.failed, ['late', 'a'])
})

void t.test('the status of a plugin has its current error', async (t) => {
	const host = await startHost(t.testdir(), { 'a/index.js': plugin('a') }, { a: {} })
	t.teardown(() => host.stop())
	const lastError = (): unknown => host.gateway.status.plugins()[0]?.last_error
	host.write('a/index.js', 'export default {')
	await host.gateway.reload()
	t.match(lastError(), /does not load/)
	host.write('a/index.js', plugin('a'))
	host.want({ a: { tagg: 1 } })
	await t.rejects(host.gateway.reload(), { message: /plugins\.a\.tagg/ })
	t.match(lastError(), /plugins\.a\.tagg: is not a known setting/, 'not the former error of its code')
	t.match(await host.get('/a'), { status: 200, body: '1' })
	host.want({ a: {} })
	await host.gateway.reload()
	t.equal(lastError(), null)
})

void t.test('a faulty plugin is refused with what to change', async (t) => {
	const host = await startHost(t.testdir(), { 'a/index.js': plugin('a') }, { a: {} })
	t.teardown(() => host.stop())
	const start = (body: string): string => `export default { name: 'b', start: (ctx) => { ${body} } }`
	for (const [code, settings, message] of [
		[
			"export default { name: 'b', strat: () => {} }",
			{},
			/"strat" is not a part of a plugin; there are: name, version/,
		],
		[
			"export default { name: 'b', contract: '9.0', begin() {} }",
			{},
			/version 9\.0 of the contract of plugins, and this gateway has .*: upgrade the gateway to 9\.0, or install an older/,
		],
		[
			"export default { name: 'b', contract: '0.1' }",
			{},
			/version 0\.1 of the contract.*: install a newer version of the/,
		],
		["export default { name: 'b', contract: 1 }", {}, /contract must be the version that it is written for, such as '/],
		["export default { name: 'c' }", {}, /calls itself "c"/],
		["export default { name: 'b', start: 1 }", {}, /start must be a function/],
		["export default { name: 'b', needs: 'a' }", {}, /plugin "b": needs must be a list of plugins' names, such as/],
		[
			"export default { name: 'b', config: (joi) => joi.nothing() }",
			{},
			/plugin "b": the schema of its settings cannot be used: joi\.nothing is not a function; fix its config\(joi\)/,
		],
		["export default { name: 'b', config: () => ({ a: 1 }) }", {}, /plugin "b": .*: it is not a schema of joi; fix/],
		[
			"export default { name: 'b', config: (joi) => joi.string() }",
			{},
			/plugin "b": .*: it is a schema of type string; return joi\.object/,
		],
		["export default { name: 'b', start() { throw { code: 7 } } }", {}, /failed to start: \{"code":7\}/],
		["export default { name: 'b' }", { zone: 'x' }, /plugins\.b\.zone: the plugin takes no settings.*write b: true/],
		[
			start("ctx.primitive({ name: 'Now', description: 'x', run() {} })"),
			{},
			/the primitive "Now" needs a name such as clock\.now/,
		],
		[start("ctx.primitive({ name: 'b.now', run() {} })"), {}, /needs a description/],
		[start("ctx.primitive({ name: 'b.now', description: 'x' })"), {}, /needs a function run/],
		[
			start("const p = {}; p.p = p; ctx.primitive({ name: 'b.now', description: 'x', parameters: p, run() {} })"),
			{},
			/parameters of the tool b\.now are neither/,
		],
		[
			start("ctx.primitive({ name: 'b.now', description: 'x', parameters: { maximum: 1n }, run() {} })"),
			{},
			/parameters of the tool b\.now are neither/,
		],
		[
			start(
				"const parameters = ctx.joi.object({ a: ctx.joi.any().default(1n) }); ctx.primitive({ name: 'b.now', description: 'x', parameters, run() {} })",
			),
			{},
			/parameters of the tool b\.now cannot be described to a model: .*BigInt/,
		],
		[
			start("ctx.primitive({ name: 'b.now', description: 'x', parameters: 'a', run() {} })"),
			{},
			/parameters of the tool b\.now are neither/,
		],
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

void t.test('events that a plugin emits faster than they are stored are refused', async (t) => {
	const code = `export default {
		name: 'flood',
		start: (ctx) => ({ emit: () => Promise.allSettled(
			Array.from({ length: 10_002 }, (_, n) => ctx.emit({ event_type: 'flood.rose', payload: { n } }))) }),
		http: (server, ctx, flood) => server.route({ method: 'GET', path: '/flood', options: { auth: false }, handler: async () =>
			(await flood.emit()).flatMap(({ reason }) => reason?.message ?? []) }),
	}`
	const host = await startHost(t.testdir(), { 'flood/index.js': code }, { flood: {} })
	t.teardown(() => host.stop())
	for (const _ of ['at first', 'once all are stored']) {
		const refused = JSON.parse((await host.get('/flood')).body) as string[]
		t.equal(refused.length, 2)
		t.match(refused[0], /plugin "flood": 10000 of its events are not stored yet.*; await each ctx\.emit/)
	}
})

void t.test('a handler that triggers itself is stopped after 1000 events, and its plugin is reported', async (t) => {
	const plugin = (name: string, heard: string, start = ''): string => `export default {
		name: '${name}',
		start(ctx) {
			let count = 0
			ctx.on('${heard}', async () => {
				await ctx.emit({ event_type: '${name}.heard', payload: {} })
				count++
			})
			${start}
			return { count: () => count }
		},
		http: (server, ctx, own) => server.route([
			{ method: 'GET', path: '/${name}', options: { auth: false }, handler: () => own.count() },
			{ method: 'GET', path: '/${name}/begin', options: { auth: false }, handler: () =>
				ctx.emit({ event_type: '${name}.begun', payload: {} }).then(() => 'ok') },
		]),
	}`
	const host = await startHost(
		t.testdir(),
		{
			'echo/index.js': plugin('echo', 'echo.*'),
			'ping/index.js': plugin('ping', 'pong.*'),
			'pong/index.js': plugin('pong', 'ping.heard'),
			'fine/index.js': plugin('fine', 'fine.begun'),
		},
		{ echo: {}, ping: {}, pong: {}, fine: {} },
	)
	t.teardown(() => host.stop())
	const problemOf = (names: string[]): string | undefined =>
		host.gateway.status.plugins().find(({ name, last_error }) => names.includes(name) && last_error)?.last_error ??
		undefined
	const begin = (name: string): Promise<unknown> => host.get(`/${name}/begin`)
	await begin('echo')
	t.match(
		await eventually(() => problemOf(['echo'])),
		/cannot emit "echo\.heard": one event led to 1000 more .*in place of "\*"/,
	)
	t.equal((await host.get('/echo')).body, '1000')
	await begin('pong')
	t.match(
		await eventually(() => problemOf(['ping', 'pong'])),
		/cannot emit "p[io]ng\.heard": one event led to 1000 more/,
	)
	for (let n = 0; n < 1_100; n++) await begin('fine')
	await eventually(async () => (await host.get('/fine')).body === '1100')
	t.equal(problemOf(['fine']), undefined, 'events that do not cause each other are not limited')
})

void t.test('a change between the start of a plugin and the first check of its folder is applied', async (t) => {
	const code = (version: string, start: string): string =>
		`import { writeFileSync } from 'node:fs'; export default { name: 'NAME', version: '${version}', start() {${start}} }`
	const second = code('2', '')
	const first = code('1', `writeFileSync(import.meta.filename, ${JSON.stringify(second)})`)
	const elsewhere = t.testdir({ 'index.js': first.replaceAll('NAME', 'elsewhere') })
	const { running, stop } = await startGateway({
		config: `plugins: {inside: true, elsewhere: {path: ${elsewhere}}}\n`,
		files: { 'plugins/inside/index.js': first.replaceAll('NAME', 'inside') },
	})
	t.teardown(stop)
	const { status } = running.gateway
	for (const name of ['inside', 'elsewhere'])
		await eventually(() => status.plugins().find((one) => one.name === name)?.version === '2')
})

void t.test('a plugin outside of the home that does not start is reloaded when it is edited', async (t) => {
	const folder = t.testdir({
		starts: { 'index.js': "export default { name: 'starts', start() { throw new Error('not yet') } }" },
		loads: { 'index.js': 'export default {' },
	})
	const paths = ['starts', 'loads'].map((name) => [name, join(folder, name)] as const)
	const { running, stop } = await startGateway({
		config: `plugins: {${paths.map(([name, path]) => `${name}: {path: ${path}}`).join(', ')}}\n`,
	})
	t.teardown(stop)
	const stateOf = (wanted: string): string | undefined =>
		running.gateway.status.plugins().find(({ name }) => name === wanted)?.state
	for (const [name, path] of paths) {
		t.equal(stateOf(name), 'failed')
		writeFileSync(join(path, 'index.js'), `export default { name: '${name}', start() {} }`)
		await eventually(() => stateOf(name) === 'running')
	}
})

void t.test('a linked plugin is reloaded when the link changes, and when its target is edited', async (t) => {
	const code = (version: string): string => `export default { name: 'NAME', version: '${version}' }`
	const folder = t.testdir({ releases: {} })
	const home = makeHome({ config: `plugins: {inside: true, outside: {path: ${folder}/current/outside}}\n` }, t)
	const write = (release: string, version: string): void => {
		for (const name of ['inside', 'outside']) {
			mkdirSync(join(folder, release, name), { recursive: true })
			writeFileSync(join(folder, release, name, 'index.js'), code(version).replace('NAME', name))
		}
	}
	const link = (release: string): void => {
		symlinkSync(join(folder, release), join(folder, 'next'))
		renameSync(join(folder, 'next'), join(folder, 'current'))
	}
	write('one', '1')
	write('two', '2')
	link('one')
	mkdirSync(join(home, 'plugins'), { recursive: true })
	symlinkSync(join(folder, 'current/inside'), join(home, 'plugins/inside'))
	const { running, stop } = await startGateway({ home })
	t.teardown(stop)
	const has = (version: string): Promise<unknown> =>
		eventually(
			() => ['inside', 'outside'].map((name) => running.gateway.status.plugins().find((one) => one.name === name)),
			(found) => found.every((one) => one?.version === version),
		)
	await has('1')
	link('two')
	await has('2')
	write('two', '3')
	await has('3')
	link('one')
	await has('1')
})

void t.test('a linked plugin is reloaded when a dangling link gets another target', async (t) => {
	const folder = t.testdir({
		one: { inside: { 'index.js': "export default { name: 'inside', version: '1' }" } },
		two: { inside: { 'index.js': "export default { name: 'inside', version: '2' }" } },
	})
	const home = makeHome({ config: 'plugins: {inside: true}\n', files: { 'plugins/README': 'for links' } }, t)
	const link = (release: string): void => symlinkSync(join(folder, release), join(folder, 'current'))
	link('one')
	symlinkSync(join(folder, 'current/inside'), join(home, 'plugins/inside'))
	const { running, stop } = await startGateway({ home })
	t.teardown(stop)
	const inside = () => running.gateway.status.plugins().find(({ name }) => name === 'inside')
	t.match(inside(), { version: '1', last_error: null })
	rmSync(join(folder, 'current'))
	await eventually(inside, (one) => one?.last_error !== null)
	link('two')
	await eventually(inside, (one) => one?.version === '2')
})

void t.test('a start does not reload plugins that have not changed meanwhile', async (t) => {
	shared.started = []
	const code = (name: string, body = ''): string =>
		`export default { name: '${name}', start() { globalThis.started.push('${name}'); ${body} } }`
	const elsewhere = t.testdir({ 'index.js': code('elsewhere') })
	const { running, stop } = await startGateway({
		config: `plugins: {inside: true, fails: true, elsewhere: {path: ${elsewhere}}}\n`,
		files: {
			'plugins/inside/index.js': code('inside'),
			'plugins/fails/index.js': code('fails', `throw new Error('not today')`),
		},
	})
	t.teardown(stop)
	await running.gateway.reload()
	t.strictSame(
		shared.started.toSorted(),
		['elsewhere', 'fails', 'fails', 'inside'],
		'a reload retries the failed plugin',
	)
	t.equal(running.gateway.status.generation(), 2)
})

void t.test('an invalid change is refused for that reason on a full disk, too', async (t) => {
	const { home, running, stop } = await startGateway({ config: 'store: {min_free_mib: 1048576}\n' })
	t.teardown(stop)
	writeFileSync(join(home, 'config/gateway.yaml'), 'server: {prot: 1}\n')
	await t.rejects(running.gateway.reload(), { code: 'config_invalid', message: /server\.prot/ })
})

void t.test('a hundred reloads start a hundred instances, and the last one serves', async (t) => {
	const host = await startHost(t.testdir(), { 'a/index.js': plugin('a') }, { a: {} })
	t.teardown(() => host.stop())
	for (let round = 1; round <= 100; round++) {
		host.want({ a: { tag: String(round) } })
		await Promise.all([host.gateway.reload(), host.gateway.reload(), host.get('/a')])
	}
	const journal = shared.journal ?? []
	t.equal(host.gateway.status.generation(), 101)
	t.equal(journal.filter((line) => line.startsWith('start')).length, 101)
	t.equal((await host.get('/a')).body, '1100')
})

void t.test('extensions belong to a generation, and their users are notified of each', async (t) => {
	const user = `
export default {
	name: 'user',
	start(ctx) {
		ctx.onGeneration(() => globalThis.journal.push(ctx.extensions('thing').map((one) => one.plugin + '=' + one.value).join()))
		ctx.onGeneration(() => { throw new Error('other plugins are not affected') })
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
	t.strictSame(shared.journal, ['giver=1', 'giver=1!', ''])
})

void t.test('a guard applies to every server, before all routes', async (t) => {
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

void t.test('a linked gateway.yaml applies again once its target is back', async (t) => {
	const folder = t.testdir({ 'gateway.yaml': 'log: {level: fatal}\n' })
	const target = join(folder, 'gateway.yaml')
	const home = makeHome({ files: { 'config/kept': '' } }, t)
	symlinkSync(target, join(home, 'config/gateway.yaml'))
	const { running, stop } = await startGateway({ home })
	t.teardown(stop)
	const { status } = running.gateway
	for (const _ of ['once', 'again']) {
		renameSync(target, `${target}.kept`)
		await eventually(() => status.configError()?.includes('which does not exist'))
		renameSync(`${target}.kept`, target)
		await eventually(
			() => status.configError(),
			(error) => error === null,
		)
	}
	const [first, second] = ['first', 'second'].map((name) => join(folder, name))
	for (const path of [first, second]) writeFileSync(path as string, '# as before\n')
	for (const path of [first, second]) {
		symlinkSync(path as string, join(home, 'config/next'))
		renameSync(join(home, 'config/next'), join(home, 'config/gateway.yaml'))
		writeFileSync(path as string, 'wrong: 1\n')
		await eventually(() => status.configError()?.includes('wrong'))
		writeFileSync(path as string, '# right\n')
		await eventually(
			() => status.configError(),
			(error) => error === null,
		)
	}
})

void t.test('a gateway starts on a full disk, and svc finds it once there is room', { skip: !canMount }, async (t) => {
	const home = smallDisk(t, '90m')
	chmodSync(home, 0o700)
	await (await startGateway({ home })).stop()
	const filler = join(home, 'filler')
	t.throws(() => writeFileSync(filler, Buffer.alloc(90 * 1024 * 1024)), { code: 'ENOSPC' })
	const { request, stop } = await startGateway({ home })
	t.teardown(stop)
	t.match((await request('GET', '/readyz?verbose')).body, 'store refuses writes: only 0 MiB are free')
	t.notOk(existsSync(join(home, 'run/gateway.json')))
	rmSync(filler)
	await eventually(() => existsSync(join(home, 'run/gateway.json')))
})
