/** An idle gateway starts fast and is small, since it loads most modules on first use. */
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import t from 'tap'
import type { Test } from 'tap'
import { runnable } from '../../core/cli/launch/bundle.mjs'
import { spawnGateway } from '../support/process.ts'

interface LoadedModule {
	how: 'import' | 'require'
	url: string
	/** The URL of the importing module. */
	by?: string
}

/** Runs a program with a hook that records the modules that it loads. */
async function modulesOf(
	t: Test,
	run: (home: string, env: NodeJS.ProcessEnv) => Promise<unknown>,
): Promise<LoadedModule[]> {
	const home = t.testdir()
	const file = join(home, 'modules.txt')
	const hook = fileURLToPath(new URL('../fixtures/note-modules.mjs', import.meta.url))
	await run(home, { NODE_OPTIONS: `--import=${hook}`, NOTE_MODULES: file })
	const lines = readFileSync(file, 'utf8').trim().split('\n')
	return lines.map((line) => JSON.parse(line) as LoadedModule)
}

const ofPackage = ({ by = '' }: LoadedModule): boolean => by.includes('/node_modules/')

function packagesOf(modules: LoadedModule[]): string[] {
	const names = modules.flatMap(({ url }) => /\/node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(url)?.[1] ?? [])
	return [...new Set(names)].toSorted()
}

/** Others are imported on first use: the MCP SDK, OpenTelemetry, prom-client, tar, ws, the stemmers of languages, … */
const atStart = ['@hapi/boom', '@hapi/bourne', '@hapi/hapi', 'chokidar', 'croner', 'joi', 'lmdb', 'pino', 'yaml']

void t.test('a start from the sources loads only these packages', async (t) => {
	const modules = await modulesOf(t, async (home, env) => (await spawnGateway(home, env, { from: 'sources' })).end())
	t.strictSame(packagesOf(modules.filter((module) => !ofPackage(module))), atStart)
	const imported = new Set(modules.flatMap(({ how, url }) => (how === 'import' ? url : [])))
	t.ok(imported.has('node:crypto'))
	t.notOk(imported.has('node:http'), 'see core/http/node-http.ts')
	const ofEngines = [...imported].filter((url) => /\/plugins\/[\w-]+\/engine\.ts$/.test(url))
	t.strictSame(ofEngines, [], 'an engine is loaded only if store.url is set')
})

void t.test('a start from the bundle loads a few files, and only packages with a binary', async (t) => {
	// Builds the bundle before, if it is stale, since that loads more modules.
	await runnable('core/main.ts')
	const all = await modulesOf(t, async (home, env) => (await spawnGateway(home, env, { from: 'launcher' })).end())
	const modules = all.filter((module) => !ofPackage(module))
	const urls = modules.map(({ url }) => url)
	const files = new Set(urls.filter((url) => /\/dist\/[^/]+\/[^/]+\.js$/.test(url)))
	t.ok(files.size > 0 && files.size < 130, String(files.size))
	t.notOk(urls.some((url) => url.endsWith('.ts')))
	t.strictSame(packagesOf(modules), ['lmdb'])
})

void t.test('svc --help loads only commander, and of plugins only their cli.ts', async (t) => {
	const svc = fileURLToPath(new URL('../../core/cli/main.ts', import.meta.url))
	const modules = await modulesOf(t, (home, env) =>
		promisify(execFile)(process.execPath, [svc, '--help'], { env: { ...process.env, SVC_HOME: home, ...env } }),
	)
	t.strictSame(packagesOf(modules), ['commander'])
	const ofPlugins = modules.map(({ url }) => url).filter((url) => url.includes('/plugins/'))
	t.ok(ofPlugins.length > 5)
	t.strictSame(
		ofPlugins.filter((url) => !/\/plugins\/[\w-]+\/cli\.ts$/.test(url)),
		[],
	)
})
