/** `svc plugins install` and `svc plugins remove`: plugins from npm packages, in `plugins/` of the home. */
import {
	existsSync,
	mkdtempSync,
	readFileSync,
	readdirSync,
	renameSync,
	rmSync,
	statSync,
	writeFileSync,
} from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { configFile } from '../../../config/home.ts'
import { changeConfig, composition, prepareHome, setSetting, settingAt, unsetSetting } from '../../host/config.ts'
import { consent } from '../consent.ts'
import { CliError } from '../contract.ts'
import type { Cli } from '../contract.ts'
import { waitUntilApplied, reportUnapplied } from '../applied.ts'
import type { Applied } from '../applied.ts'
import { runtimeFileVersion } from '../../process/runtime-file.ts'
import { checkPlugin, reportText } from './check.ts'
import { fetchPackage, installDependencies } from './npm.ts'
import type { Fetched } from './npm.ts'

/** The package of an installed plugin, stored in its folder. */
interface PackageOrigin {
	package: string
	version: string
	integrity: string
	installed_at: string
}

const marker = '.installed.json'
const forgottenMs = 60 * 60_000

export interface InstallOptions {
	yes?: boolean
	/** Replaces the settings under `plugins:` in gateway.yaml. */
	settings?: Record<string, unknown>
}

/**
 * Fetches a package, asks the user, checks the plugin and switches it on. Replaces an installed version of it. If a step fails,
 * the home stays as it was.
 */
export async function installPlugin(
	cli: Cli,
	source: string,
	{ yes = false, settings }: InstallOptions,
): Promise<void> {
	const { home, out } = cli
	prepareHome(home)
	const plugins = join(home, 'plugins')
	cleanUp(plugins)
	const staging = mkdtempSync(join(plugins, '.install-'))
	try {
		const folder = join(staging, 'package')
		const fetched = await fetchPackage(cli, source, folder)
		out.note(announcement(fetched, plugins))
		await consent(cli, { yes }, `Install ${fetched.manifest.name} ${fetched.manifest.version}?`)
		const skipped = await installDependencies(cli, folder)
		if (skipped.length > 0)
			out.note(
				out.style.warn(
					`The install scripts of ${skipped.join(', ')} were not run; the plugin may lack what they create.`,
				),
			)

		const report = await checkPlugin(cli, folder, settings)
		const { name } = report
		if (report.findings.length > 0 || name === null) out.note(reportText(report, out.style))
		if (!report.valid || name === null)
			throw new CliError('failed', 'the plugin would not run, so nothing was installed')
		const target = join(plugins, name)
		const replaced = originOf(target)
		if (existsSync(target) && replaced?.package !== fetched.manifest.name)
			throw new CliError(
				'conflict',
				`${target} is not from the package ${fetched.manifest.name}; remove or rename it first`,
			)
		const origin: PackageOrigin = {
			package: fetched.manifest.name,
			version: fetched.manifest.version,
			integrity: fetched.integrity,
			installed_at: new Date().toISOString(),
		}
		writeFileSync(join(folder, marker), `${JSON.stringify(origin, null, 2)}\n`)
		const before = runtimeFileVersion(home)
		const applied = await swapIn(folder, target, () => switchOn(cli, name, settings, before))
		const result = { name, folder: target, ...origin, replaced: replaced?.version ?? null }
		out.answer(result, (one, style) => {
			const before = one.replaced === null ? '' : `, in place of ${one.replaced}`
			return `${style.good('Installed')} ${style.plain(one.name)} ${style.plain(one.version)}${before}.`
		})
		reportUnapplied(cli, applied)
		const trouble = applied?.state === 'in_force' ? applied.trouble[name] : undefined
		if (trouble !== undefined) out.note(out.style.warn(`It has a problem: ${trouble}`))
	} finally {
		rmSync(staging, { recursive: true, force: true })
	}
}

/** Removes a plugin from gateway.yaml, and its folder if it was installed. What the plugin stored stays. */
export async function removePlugin(cli: Cli, name: string, { yes = false }: { yes?: boolean }): Promise<void> {
	const { home, env, out } = cli
	refuseBuiltIn(name)
	const folder = join(home, 'plugins', name)
	const isInstalled = originOf(folder) !== undefined
	const isSet = settingOf(home, name) !== undefined
	if (!isInstalled && !isSet)
		throw new CliError('not_found', `no plugin "${name}" was installed, and gateway.yaml does not name it`)
	const parts = [...(isSet ? ['its settings in gateway.yaml'] : []), ...(isInstalled ? [`the folder ${folder}`] : [])]
	await consent(cli, { yes }, `Remove the plugin ${name}: ${parts.join(', and ')}?`)
	// The gateway stops the plugin before its files are removed.
	const change = isSet
		? await changeConfig({ home, env, change: (text) => unsetSetting(text, ['plugins', name]) })
		: undefined
	const applied = change ? await waitUntilApplied(cli, change.file) : null
	if (isInstalled) rmSync(folder, { recursive: true, force: true })
	out.answer(
		{ name, settings: isSet, folder: isInstalled ? folder : null },
		(_, style) => `${style.good('Removed')} ${name}.`,
	)
	if (!isInstalled && existsSync(folder))
		out.note(`The folder stays, since it was not installed from a package: ${folder}`)
	out.note('What it stored stays in the home.')
	reportUnapplied(cli, applied)
}

function refuseBuiltIn(name: string): void {
	const builtIn = composition.plugins.get(name)
	if (!builtIn) return
	const instead = builtIn.required
		? 'the gateway cannot run without it'
		: `to switch it off: svc config set plugins.${name} false`
	throw new CliError('usage', `the plugin ${name} is built in, so it cannot be removed; ${instead}`)
}

/** Tells the user what happens if they agree. */
function announcement({ manifest, integrity, files, bytes }: Fetched, plugins: string): string {
	const { name, version, description, scripts = {}, dependencies = {} } = manifest
	const skipped = ['preinstall', 'install', 'postinstall', 'prepare'].filter((one) => scripts[one] !== undefined)
	const named = Object.entries(dependencies).map(([one, range]) => `${one} ${range}`)
	return [
		`${name} ${version}${description === undefined ? '' : `: ${description}`}`,
		`  ${files} files, ${bytes} bytes, ${integrity}`,
		`  dependencies: ${named.length > 0 ? named.join(', ') : 'none'}`,
		...(skipped.length > 0 ? [`  scripts that are not run: ${skipped.join(', ')}`] : []),
		`It goes into ${plugins} and is switched on in gateway.yaml, once a check has found that it runs.`,
		"A plugin runs in the gateway's process with all its rights: install only what you trust.",
	].join('\n')
}

/**
 * Replaces the old folder by the new one, then calls `work`; if that throws, restores the old one. A process that ends between
 * the two renames leaves the old folder under another name, which `cleanUp` undoes.
 */
async function swapIn<T>(folder: string, target: string, work: () => Promise<T>): Promise<T> {
	const old = join(dirname(target), `.old-${basename(target)}`)
	if (existsSync(target)) renameSync(target, old)
	try {
		renameSync(folder, target)
		const result = await work()
		rmSync(old, { recursive: true, force: true })
		return result
	} catch (error) {
		rmSync(target, { recursive: true, force: true })
		if (existsSync(old)) renameSync(old, target)
		throw error
	}
}

/** Removes or restores what a killed installation left. */
function cleanUp(plugins: string): void {
	for (const name of readdirSync(plugins)) {
		const path = join(plugins, name)
		if (name.startsWith('.old-')) {
			const target = join(plugins, name.slice('.old-'.length))
			if (existsSync(target)) rmSync(path, { recursive: true, force: true })
			else renameSync(path, target)
		}
		const isForgotten = name.startsWith('.install-') && statSync(path).mtimeMs < Date.now() - forgottenMs
		if (isForgotten) rmSync(path, { recursive: true, force: true })
	}
}

/** Keeps the settings in gateway.yaml unless others are given. If they stay the same, only waits until the gateway has read the new folder. */
async function switchOn(
	cli: Cli,
	name: string,
	settings: Record<string, unknown> | undefined,
	before: string | undefined,
): Promise<Applied | null> {
	const { home, env } = cli
	const setting = settingOf(home, name)
	const wanted = settings ?? setting ?? true
	if (isDeepStrictEqual(setting, wanted)) return waitUntilApplied(cli, configFile(home), before)
	const { file } = await changeConfig({ home, env, change: (text) => setSetting(text, ['plugins', name], wanted) })
	return waitUntilApplied(cli, file)
}

/** The entry of a plugin in gateway.yaml. */
function settingOf(home: string, name: string): unknown {
	const file = configFile(home)
	return existsSync(file) ? settingAt(readFileSync(file, 'utf8'), ['plugins', name]) : undefined
}

function originOf(folder: string): PackageOrigin | undefined {
	const file = join(folder, marker)
	return existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as PackageOrigin) : undefined
}
