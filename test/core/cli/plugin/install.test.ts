/** `svc plugins install` and `remove`, with npm itself, from folders and archives, without a registry. */
import { existsSync, mkdirSync, readFileSync, readdirSync, renameSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import t from 'tap'
import { create } from 'tar'
import type { Test } from 'tap'
import { exitCodes } from '../../../../core/cli/contract.ts'
import { svcFor as svcWithout } from '../../../support/cli.ts'
import type { Svc } from '../../../support/cli.ts'
import { testFolder } from '../../../support/folder.ts'
import { startGateway } from '../../../support/gateway.ts'
import { listenOnLoopback } from '../../../support/loopback.ts'

void t.test(
	'a plugin with a dependency is installed, upgraded, restored after a kill and removed while a gateway runs',
	async (t) => {
		const { home, src } = setUp(t)
		write(src, 'greeting/package.json', {
			name: 'greeting',
			version: '1.0.0',
			main: 'index.js',
			scripts: { install: `touch ${home}/ran` },
		})
		write(src, 'greeting/index.js', "module.exports = 'Hello'")
		/** As npm packs it. */
		const packed = async (version: string, word: string, dependencies = {}): Promise<string> => {
			write(src, 'notes/package.json', {
				name: '@ann/svc-plugin-notes',
				version,
				type: 'module',
				exports: { '.': { default: './lib/notes.ts' } },
				dependencies,
				devDependencies: { 'no-such-package-anywhere': '1.0.0' },
				scripts: { prepack: `touch ${home}/ran`, postinstall: `touch ${home}/ran` },
			})
			write(
				src,
				'notes/lib/notes.ts',
				`${'greeting' in dependencies ? "import greeting from 'greeting'" : "const greeting = 'Hello'"}
			export default { name: 'notes', version: '${version}', config: (joi: any) => joi.object({ mark: joi.string().default('!') }), start(ctx: any) {
				ctx.primitive({ name: 'notes.greet', description: 'Greets.', run: () => greeting + ' ${word}' + ctx.config.mark })
			} }`,
			)
			const file = `./ann-svc-plugin-notes-${version}.tgz`
			await create({ cwd: join(src, 'notes'), file: join(src, file), gzip: true, prefix: 'package' }, ['.'])
			return file
		}
		const gateway = await startGateway({ home })
		t.teardown(() => gateway.stop())
		const svc = svcFor({ home, url: gateway.url })
		const greeting = async (): Promise<string> => (await svc(['run', 'ada', '/tool notes.greet'])).stdout
		await svc(['agents', 'create', 'ada'])

		const first = await packed('1.0.0', 'one', { greeting: `file:${src}/greeting` })
		const unconfirmed = await svc(['plugins', 'install', first], { cwd: src })
		t.equal(unconfirmed.code, exitCodes.usage)
		t.match(unconfirmed.stderr, /dependencies: greeting file:.*scripts that are not run: postinstall.*add --yes/s)
		t.notOk(existsSync(join(home, 'plugins/notes')))

		const installed = await svc(['plugins', 'install', first, '--yes', '--settings', "{mark: '?'}", '--json'], {
			cwd: src,
		})
		t.equal(installed.code, 0, installed.stderr)
		t.match(installed.json(), {
			name: 'notes',
			version: '1.0.0',
			package: '@ann/svc-plugin-notes',
			integrity: /^sha512-/,
			replaced: null,
		})
		t.match(installed.stderr, 'install scripts of greeting were not run')
		t.match(await greeting(), 'Hello one?')
		t.strictSame(hidden(home), [])

		// A version that does not load leaves the older one installed.
		const broken = await packed('1.1.0', "one'; throw new Error('no'); '")
		const refused = await svc(['plugins', 'install', broken, '--yes'], { cwd: src })
		t.equal(refused.code, exitCodes.failed)
		t.match(refused.stderr, 'nothing was installed')
		t.match(await greeting(), 'Hello one?')
		t.strictSame(hidden(home), [])

		const second = await svc(['plugins', 'install', await packed('2.0.0', 'two'), '--yes'], { cwd: src })
		t.equal(second.code, 0, second.stderr)
		t.match(second.stdout, 'notes 2.0.0, in place of 1.0.0')
		t.match(await greeting(), 'Hello two?', 'with the settings from before')

		// As after a kill between the two moves.
		renameSync(join(home, 'plugins/notes'), join(home, 'plugins/.old-notes'))
		const absent = await svc(['plugins', 'install', './nothing-here', '--yes'], { cwd: src })
		t.equal(absent.code, exitCodes.not_found)
		t.match(absent.stderr, `there is no ${join(src, 'nothing-here')}`)
		t.notMatch(absent.stderr, 'npm')
		t.ok(existsSync(join(home, 'plugins/notes/lib/notes.ts')))
		t.strictSame(hidden(home), [])

		const removed = await svc(['plugins', 'remove', 'notes', '--yes'])
		t.equal(removed.code, 0, removed.stderr)
		t.notOk(existsSync(join(home, 'plugins/notes')))
		t.notMatch(readFileSync(join(home, 'config/gateway.yaml'), 'utf8'), 'mark:')
		t.equal((await svc(['plugins', 'notes'])).code, exitCodes.not_found)
		t.notOk(existsSync(join(home, 'ran')), 'no script of any package ran')
	},
)

void t.test('a folder needs no ./, and one without package.json is refused with advice to copy it', async (t) => {
	const { home, src } = setUp(t)
	const svc = svcFor({ home })
	write(src, 'more/mine/index.js', "export default { name: 'mine' }")
	const bare = await svc(['plugins', 'install', 'more/mine', '--yes'], { cwd: src })
	t.equal(bare.code, exitCodes.failed)
	t.match(bare.stderr, `the folder ${src}/more/mine has no package.json; copy it to ${home}/plugins`)
	write(src, 'more/mine/package.json', { name: 'mine', version: '1.0.0', type: 'module' })
	const installed = await svc(['plugins', 'install', 'more/mine', '--yes'], { cwd: src })
	t.equal(installed.code, 0, installed.stderr)
	t.ok(existsSync(join(home, 'plugins/mine/index.js')))
	t.strictSame(hidden(home), [])
})

void t.test('for an unknown package whose name is that of a folder, the hint is ./', async (t) => {
	const { home, src } = setUp(t)
	const registry = createServer((_, response) => response.writeHead(404).end())
	const { url, stop } = await listenOnLoopback(registry)
	t.teardown(stop)
	const env = { PATH: process.env.PATH, npm_config_registry: `${url}/` }
	const install = () => svcWithout({ home })(['plugins', 'install', 'mine', '--yes'], { cwd: src, env })
	const unknown = await install()
	t.equal(unknown.code, exitCodes.not_found)
	t.notMatch(unknown.stderr, './mine')
	t.match(unknown.stderr, /^svc: npm: Not Found - GET http\S+mine\b/m)
	t.notMatch(unknown.stderr, /\b404\b|tarball|\be404/i, 'only the informative part')
	write(src, 'mine/package.json', { name: 'mine', version: '1.0.0', type: 'module' })
	const meant = await install()
	t.equal(meant.code, exitCodes.not_found)
	t.match(meant.stderr, 'to install the folder mine: svc plugins install ./mine')
})

void t.test('a folder that was not installed is neither replaced nor removed', async (t) => {
	const { home, src } = setUp(t)
	const svc = svcFor({ home })
	write(src, 'mine/package.json', { name: 'mine', version: '1.0.0', type: 'module' })
	write(src, 'mine/index.js', "export default { name: 'mine' }")
	write(home, 'plugins/mine/index.js', "export default { name: 'mine' }")
	const taken = await svc(['plugins', 'install', '../src/mine', '--yes'], { cwd: home })
	t.equal(taken.code, exitCodes.conflict)
	t.match(taken.stderr, 'is not from the package mine')
	t.equal((await svc(['config', 'set', 'plugins.mine', 'true'])).code, 0)
	const removed = await svc(['plugins', 'remove', 'mine', '--yes'])
	t.match(removed.stderr, 'The folder stays')
	t.ok(existsSync(join(home, 'plugins/mine/index.js')))
	t.equal((await svc(['plugins', 'remove', 'mine', '--yes'])).code, exitCodes.not_found)
	write(home, 'config/gateway.yaml', 'plugins: [')
	const broken = await svc(['plugins', 'remove', 'mine', '--yes'])
	t.equal(broken.code, exitCodes.config)
	t.match(broken.stderr, 'the file cannot be changed while it contains an error')
})

void t.test('a built-in plugin is not removed, with the command that switches it off', async (t) => {
	const { home } = setUp(t)
	const svc = svcFor({ home })
	write(home, 'config/gateway.yaml', 'plugins: {memory: false}\n')
	for (const [name, advice] of [
		['agents', 'to switch it off: svc config set plugins.agents false'],
		['memory', 'to switch it off: svc config set plugins.memory false'],
		['auth', 'the gateway cannot run without it'],
	] as const) {
		const { code, stderr } = await svc(['plugins', 'remove', name, '--yes'])
		t.equal(code, exitCodes.usage)
		t.match(stderr, `the plugin ${name} is built in, so it cannot be removed; ${advice}`)
	}
	t.equal(readFileSync(join(home, 'config/gateway.yaml'), 'utf8'), 'plugins: {memory: false}\n')
})

function setUp(t: Test): { home: string; src: string } {
	const folder = testFolder(t)
	const [home, src] = [join(folder, 'home'), join(folder, 'src')]
	for (const one of [home, src]) mkdirSync(one, { mode: 0o700 })
	return { home, src }
}

function write(folder: string, path: string, content: string | object): void {
	mkdirSync(join(folder, path, '..'), { recursive: true })
	writeFileSync(join(folder, path), typeof content === 'string' ? content : JSON.stringify(content))
}

/** With a PATH, so that npm is found. */
function svcFor(options: Parameters<typeof svcWithout>[0]): Svc {
	const svc = svcWithout(options)
	return (argv, options = {}) => svc(argv, { ...options, env: { PATH: process.env.PATH } })
}

/** Leftovers of an installation in the folder of plugins. */
function hidden(home: string): string[] {
	return readdirSync(join(home, 'plugins')).filter((name) => name.startsWith('.'))
}
