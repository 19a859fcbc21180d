/** Finds the problems of a plugin by running it in this process, in a gateway with a temporary home. */
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { stringify } from 'yaml'
import { messageOf } from '../../errors.ts'
import { entryOf } from '../../host/entry.ts'
import type { Plugin } from '../../plugin.ts'
import type { CheckOrder, Inspection, PluginFinding } from './check.ts'
import { extensionFindings } from './extension-findings.ts'
import { commandFindings, doctorFindings } from './file-findings.ts'
import { checkName } from './name.ts'
import { routeFindings } from './route-findings.ts'

export interface Inspector {
	/** Called before each step, which may hang or end the process. */
	doing(what: string): Promise<void>
	/** Called once the gateway exists. `report` passes an uncaught error to it, and the gateway finds the plugin that threw it. */
	uncaught(report: (error: unknown) => void): void
}

type Wrong = (problem: string, fix: string, level?: PluginFinding['level']) => undefined

/** Never throws because of a problem. Of the user's home, only the plugins and their settings are used. */
export async function inspect(order: CheckOrder, inspector: Inspector): Promise<Inspection> {
	const findings: PluginFinding[] = []
	const wrong: Wrong = (problem, fix, level = 'error') => void findings.push({ level, problem, fix })
	const plugin = await load(order.folder, wrong)
	if (plugin && hasName(plugin, wrong)) await run(plugin, order, wrong, inspector)
	return { name: plugin?.name ?? null, version: plugin?.version ?? null, findings }
}

async function load(folder: string, wrong: Wrong): Promise<Plugin | undefined> {
	let entry: string | undefined
	try {
		entry = entryOf(folder)
	} catch (error) {
		return wrong(messageOf(error), 'correct package.json')
	}
	if (entry === undefined)
		return wrong('it has no entry file', 'add index.ts or index.js, or name the file as `main` in package.json')
	try {
		const { default: plugin } = (await import(pathToFileURL(entry).href)) as { default?: Plugin }
		if (typeof plugin?.name === 'string') return plugin
	} catch (error) {
		return wrong(`its code does not load: ${messageOf(error)}${placeOf(error)}`, fixOf(error))
	}
	return wrong(
		'its entry does not default-export a plugin',
		"write `export default { name: '…', start(ctx) { … } } satisfies Plugin`",
	)
}

function hasName({ name }: Plugin, wrong: Wrong): boolean {
	try {
		checkName(name)
		return true
	} catch (error) {
		wrong(messageOf(error), 'change `name` in the entry file')
		return false
	}
}

async function run(plugin: Plugin, order: CheckOrder, wrong: Wrong, { doing, uncaught }: Inspector): Promise<void> {
	const { name } = plugin
	await doing('starting it')
	// Loaded here: it takes longest, and most problems are found without a gateway.
	const { boot } = await import('../../boot.ts')
	const home = mkdtempSync(join(tmpdir(), 'svc-check-'))
	try {
		mkdirSync(join(home, 'config'))
		writeFileSync(join(home, 'config/gateway.yaml'), stringify({ plugins: pluginsFor(name, plugin, order) }))
		const running = await boot({
			home,
			env: { ...process.env, SVC_PORT: '0', SVC_LEGACY_PORT: '0', SVC_LOG_LEVEL: 'silent' },
			created: (gateway) => uncaught((error) => gateway.uncaught(error)),
		})
		// Work that its start left to later turns of the event loop may fail.
		for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve))
		const { generation, status } = running.gateway
		const found = status.plugins().find((one) => one.name === name)
		const problem = found?.last_error?.replaceAll(join(home, 'config/gateway.yaml'), 'gateway.yaml')
		if (generation && found?.state === 'running') {
			if (problem) wrong(problem, 'the plugin reports this itself, by ctx.trouble', 'warning')
			for (const one of [
				...routeFindings(name, generation.servers),
				...(await commandFindings(name, home)),
				...(await doctorFindings(home)),
				...(await extensionFindings(name, (point) => generation.extensions(point))),
			])
				wrong(one.problem, one.fix, one.level)
		} else wrong(problem ?? 'it does not start', fixOfStart(name, problem ?? '', found?.state === 'failing'))
		await doing('stopping it')
		await running.stop()
	} catch (error) {
		wrong(`the gateway does not start with it: ${messageOf(error)}`, 'change what the message names')
	} finally {
		rmSync(home, { recursive: true, force: true })
	}
}

/** The `plugins:` of the temporary home: the plugin, and those that it needs. */
function pluginsFor(name: string, { needs = [] }: Plugin, order: CheckOrder): Record<string, unknown> {
	const settingsOf = (plugin: string, path: string): unknown => {
		const declared = order.plugins[plugin]
		return { path, ...(typeof declared === 'object' && declared !== null && declared), enabled: true }
	}
	const others = (Array.isArray(needs) ? needs : [])
		.map((need) => [need, join(order.pluginsFolder, need)] as const)
		.filter(([, folder]) => existsSync(folder))
	return {
		...Object.fromEntries(others.map(([need, folder]) => [need, settingsOf(need, folder)])),
		[name]: { ...(order.settings ?? (settingsOf(name, '') as object)), path: order.folder },
	}
}

function fixOfStart(name: string, problem: string, isFailing: boolean): string {
	if (isFailing) return 'catch the error: await the promise, add a catch, or listen for `error`'
	if (/needs plugin/.test(problem))
		return 'correct `needs`: names of built-in plugins, or of folders in plugins/ of the home'
	if (problem.includes(`plugins.${name}`) && problem.includes('gateway.yaml:'))
		return `give it the settings that it needs: svc config set plugins.${name} '{…}', or --settings '{…}' for this check`
	if (/both (offer|declare)|already/.test(problem)) return "choose other names, beginning with the plugin's own"
	return 'change what the message names'
}

function fixOf(error: unknown): string {
	const { code } = error as NodeJS.ErrnoException
	if (code === 'ERR_MODULE_NOT_FOUND') return 'correct the import, or install the package: npm install in its folder'
	if (code === 'ERR_PACKAGE_PATH_NOT_EXPORTED')
		return 'import only types from svc-gateway: `import type { … }`; values are handed in, such as by `ctx` and `joi`'
	if (code === 'ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX')
		return 'use TypeScript whose types can simply be left out: no enums, namespaces or parameter properties'
	if (error instanceof SyntaxError) return 'correct the code; `node --check` on the file shows the place'
	return 'correct the code at that place'
}

/** ` (index.ts:11)`: the first position in the stack; empty if there is none. */
function placeOf(error: unknown): string {
	const stack = (error as Error | null)?.stack ?? ''
	const [, file, line] = /\/([^/\n?:]+\.[cm]?[jt]s)(?:\?[^:\n]*)?:(\d+)/.exec(stack) ?? []
	return file === undefined ? '' : ` (${file}:${line})`
}
