/** An idle gateway is quick to start and small because of what it does not load before somebody needs it. */
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import t from 'tap'
import { runnable } from '../../core/cli/launch/bundle.mjs'
import { spawnGateway } from '../support/process.ts'

interface Noted {
	how: 'import' | 'require'
	url: string
	/** Of the module that asked for it. */
	by?: string
}

/** Others are imported at first need: MCP's SDK, OpenTelemetry, prom-client, tar, ws, the stemmers of languages, … */
const atStart = ['@hapi/boom', '@hapi/bourne', '@hapi/hapi', 'chokidar', 'croner', 'joi', 'lmdb', 'pino', 'yaml']

void t.test('at its start a gateway loads these packages, and no others', async (t) => {
	const home = t.testdir()
	const noted = join(home, 'modules.txt')
	const hook = fileURLToPath(new URL('../fixtures/note-modules.mjs', import.meta.url))
	const env = { NODE_OPTIONS: `--import=${hook}`, NOTE_MODULES: noted }
	const gateway = await spawnGateway(home, env, { from: 'sources' })
	await gateway.end()
	const lines = readFileSync(noted, 'utf8').trim().split('\n')
	const modules = lines.map((line) => JSON.parse(line) as Noted)
	const packages = modules
		.filter(({ by = '' }) => !by.includes('/node_modules/'))
		.flatMap(({ url }) => /\/node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(url)?.[1] ?? [])
	t.strictSame([...new Set(packages)].toSorted(), atStart)
	const imported = new Set(modules.flatMap(({ how, url }) => (how === 'import' ? url : [])))
	t.ok(imported.has('node:crypto'))
	t.notOk(imported.has('node:http'), 'see core/http/node-http.ts')
	const ofEngines = [...imported].filter((url) => /\/plugins\/[\w-]+\/engine\.ts$/.test(url))
	t.strictSame(ofEngines, [], 'an engine is loaded where store.url is set')
})

void t.test('from its bundle it loads a few files, and of packages only what has a binary', async (t) => {
	const home = t.testdir()
	const noted = join(home, 'modules.txt')
	const hook = fileURLToPath(new URL('../fixtures/note-modules.mjs', import.meta.url))
	const env = { NODE_OPTIONS: `--import=${hook}`, NOTE_MODULES: noted }
	// Now, if it is stale: the process that makes it loads more.
	await runnable('core/main.ts')
	const gateway = await spawnGateway(home, env, { from: 'launcher' })
	await gateway.end()
	const modules = readFileSync(noted, 'utf8')
		.trim()
		.split('\n')
		.map((line) => JSON.parse(line) as Noted)
		.filter(({ by = '' }) => !by.includes('/node_modules/'))
	const urls = modules.map(({ url }) => url)
	const files = new Set(urls.filter((url) => /\/dist\/[^/]+\/[^/]+\.js$/.test(url)))
	t.ok(files.size > 0 && files.size < 130, String(files.size))
	t.notOk(urls.some((url) => url.endsWith('.ts')))
	const packages = urls.flatMap((url) => /\/node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(url)?.[1] ?? [])
	t.strictSame([...new Set(packages)].toSorted(), ['lmdb'])
})

void t.test('svc --help loads commander alone, and of plugins only what declares their commands', async (t) => {
	const home = t.testdir()
	const noted = join(home, 'modules.txt')
	const hook = fileURLToPath(new URL('../fixtures/note-modules.mjs', import.meta.url))
	const svc = fileURLToPath(new URL('../../core/cli/main.ts', import.meta.url))
	const env = { ...process.env, SVC_HOME: home, NODE_OPTIONS: `--import=${hook}`, NOTE_MODULES: noted }
	await promisify(execFile)(process.execPath, [svc, '--help'], { env })
	const urls = readFileSync(noted, 'utf8')
		.trim()
		.split('\n')
		.map((line) => (JSON.parse(line) as Noted).url)
	const packages = urls.flatMap((url) => /\/node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(url)?.[1] ?? [])
	t.strictSame([...new Set(packages)], ['commander'])
	const ofPlugins = urls.filter((url) => url.includes('/plugins/'))
	t.ok(ofPlugins.length > 5)
	t.strictSame(
		ofPlugins.filter((url) => !/\/plugins\/[\w-]+\/cli\.ts$/.test(url)),
		[],
	)
})
