/** Loads the code of a plugin: built in, or from a folder whose files are read again after any of them changes. */
import { createHash } from 'node:crypto'
import { readFile, realpath, stat } from 'node:fs/promises'
import { basename, dirname, join, relative, resolve } from 'node:path'
import { within } from '../util/deadline.ts'
import { entriesIn } from '../util/entries-in.ts'
import { familyOf, reserveFamilies } from '../events/families.ts'
import { declareCodes, messageOf, pluginInvalid } from '../errors.ts'
import { contractProblem } from './contract-version.ts'
import { checkDeclared } from './declared.ts'
import { codeFile, entryOf } from './entry.ts'
import { freshModules, installedIn } from './fresh-modules.ts'
import type { FreshModules } from './fresh-modules.ts'
import { onBehalfOf } from '../util/context.ts'
import { importOwn } from '../util/own-code.ts'
import { ownFiles, ownParts } from '../util/own-files.ts'
import { ownFolder } from '../util/culprit.ts'
import type { Plugin } from '../plugin.ts'
import type { SettingsDeclaration } from '../../config/declaration.ts'

export interface Loaded {
	plugin: Plugin
	/** What the settings file of a third-party plugin declares. */
	declaration?: SettingsDeclaration
	/** A digest that changes with the code. */
	code: string
	/** A problem that does not keep it from running. */
	trouble?: string
	/** `built in`, or the plugin's folder. */
	source: string
}

/** The `source` of built-in plugins. */
export const BUILT_IN = 'built in'

/** A file whose top-level await never settles would block every later reload. */
const IMPORT_DEADLINE_MS = 10_000
const OLD_PACKAGES = 'other packages were installed, but those that were loaded before are in use; restart the gateway'
const FILE_LIMIT = 2_000
const BYTE_LIMIT = 32 * 1024 * 1024

export class Loader {
	readonly #pluginsFolder: string
	readonly #refusal: (folder: string) => string | undefined
	readonly #cache = new Map<string, Loaded>()
	/** The folder that was read last for each plugin. */
	readonly #folders = new Map<string, string>()

	/**
	 * `pluginsFolder`: the folder of third-party plugins, by name. `refusal` returns why the code in a folder must not run, or
	 * undefined if it may; it is called before the code is read.
	 */
	constructor(pluginsFolder: string, refusal: (folder: string) => string | undefined = () => undefined) {
		this.#pluginsFolder = pluginsFolder
		this.#refusal = refusal
	}

	/**
	 * Returns the cached result while no file has changed. `path`: the folder of a third-party plugin, by default its name. Throws
	 * `plugin_invalid` if there is no such plugin, no entry file or no plugin in it, if the folder is refused, or if the code does
	 * not load.
	 */
	async load(name: string, builtIn: boolean, path?: string): Promise<Loaded> {
		const cached = this.#cache.get(name)
		if (builtIn && cached) return cached
		const loaded = builtIn
			? {
					plugin: await importPlugin(
						name,
						() => importOwn(new URL(`../../plugins/${name}/index.ts`, import.meta.url)),
						true,
					),
					code: BUILT_IN,
					source: BUILT_IN,
				}
			: await this.#loadFolder(name, path ?? name, cached)
		this.#cache.set(name, loaded)
		return loaded
	}

	/** The folder of a third-party plugin, even if its code does not load; undefined if the folder could not be read. */
	folderOf(name: string): string | undefined {
		return this.#folders.get(name)
	}

	/** Whether files of third-party plugins have changed since they were loaded. */
	async isOutdated(): Promise<boolean> {
		const folders = [...this.#cache.values()].filter(({ source }) => source !== BUILT_IN)
		const now = await Promise.all(folders.map(({ source }) => digest(source).catch(() => undefined)))
		return folders.some(({ code }, at) => code !== now[at])
	}

	async #loadFolder(name: string, path: string, cached: Loaded | undefined): Promise<Loaded> {
		const folder = resolve(this.#pluginsFolder, path)
		const entry = entryOf(folder)
		if (entry === undefined)
			refuse(
				name,
				`there is no built-in plugin of that name and no index.ts or index.js or index.mjs in ${folder}; correct the name, or set plugins.${name}.path to its folder`,
			)
		const refusal = this.#refusal(folder)
		if (refusal !== undefined) refuse(name, refusal)
		const code = await digest(folder)
		this.#folders.set(name, folder)
		if (cached?.code === code && cached.source === folder) return cached
		// Node identifies modules by their real path, and caches the target of a link.
		const real = await realpath(folder)
		const file = join(real, relative(folder, entry))
		await (reserved ??= reserveBuiltIn())
		ownFolder(real, name)
		const modules = freshModules(real, await installedIn(real))
		return onBehalfOf(name, async () => {
			try {
				const plugin = await importPlugin(name, () => modules.import(file), false)
				const declaration = await importDeclaration(plugin, dirname(file), modules)
				const trouble = modules.hasOldPackages && { trouble: OLD_PACKAGES }
				return { plugin, ...(declaration && { declaration }), ...trouble, code, source: folder }
			} catch (error) {
				if (!modules.hasOldPackages) throw error
				throw pluginInvalid(`${messageOf(error)}; ${OLD_PACKAGES}`, error)
			}
		})
	}
}

let reserved: Promise<void> | undefined

/** Reserves the event types of all built-in plugins, also of those that are switched off, so that no other event looks like theirs. */
async function reserveBuiltIn(): Promise<void> {
	reserveFamilies(ownFiles('index.ts').keys())
	for (const events of (await ownParts<NonNullable<Plugin['events']>>('events.ts')).values())
		reserveFamilies(Object.keys(events).map(familyOf))
}

const parts: ReadonlySet<string> = new Set([
	'name',
	'version',
	'contract',
	'needs',
	'exclusive',
	'scopes',
	'errors',
	'events',
	'config',
	'start',
	'guard',
	'http',
	'legacy',
] satisfies (keyof Plugin)[])

async function importDefault(name: string, load: () => Promise<unknown>): Promise<unknown> {
	try {
		const module = (await within(IMPORT_DEADLINE_MS, 'its code', load())) as { default?: unknown }
		return module.default
	} catch (error) {
		throw pluginInvalid(`plugin "${name}" does not load: ${messageOf(error)}${placeOf(error)}`, error)
	}
}

/** The parts of a declaration that a third-party plugin may have. */
const declarable: ReadonlySet<string> = new Set([
	'description',
	'schema',
	'check',
] satisfies (keyof SettingsDeclaration)[])

/**
 * Undefined without a settings file that has a `schema`. Version 0.1.0 did not read settings.ts, so a plugin may have a file of that
 * name for other purposes.
 */
async function importDeclaration(
	{ name, config }: Plugin,
	folder: string,
	modules: FreshModules,
): Promise<SettingsDeclaration | undefined> {
	const file = codeFile(folder, 'settings')
	if (file === undefined) return undefined
	const declared = await importDefault(name, () => modules.import(file))
	const declaration = declared as Partial<SettingsDeclaration> | null | undefined
	if (typeof declaration?.schema !== 'function') return undefined
	const unknown = Object.keys(declaration).find((key) => !declarable.has(key))
	if (unknown !== undefined)
		refuse(name, `its settings file must not declare "${unknown}"; there are: ${[...declarable].join(', ')}`)
	if (config) refuse(name, 'it has a schema in its settings file and in config(joi); keep one of the two')
	return declaration
}

async function importPlugin(name: string, load: () => Promise<unknown>, builtIn: boolean): Promise<Plugin> {
	const plugin = (await importDefault(name, load)) as Partial<Plugin> | null | undefined
	if (typeof plugin !== 'object' || typeof plugin?.name !== 'string')
		refuse(name, 'its entry must default-export an object with a name (see core/plugin.ts)')
	if (plugin.name !== name) refuse(name, `it calls itself "${plugin.name}"; both names must be the same`)
	// First: a newer contract may have other parts.
	const problem = contractProblem(plugin.contract)
	if (problem !== undefined) refuse(name, problem)
	const unknown = Object.keys(plugin).find((key) => !parts.has(key))
	if (unknown !== undefined) refuse(name, `"${unknown}" is not a part of a plugin; there are: ${[...parts].join(', ')}`)
	for (const part of ['config', 'start', 'guard', 'http', 'legacy'] as const)
		if (plugin[part] !== undefined && typeof plugin[part] !== 'function') refuse(name, `${part} must be a function`)
	const { needs = [] } = plugin
	if (!Array.isArray(needs) || !needs.every((need) => typeof need === 'string'))
		refuse(name, "needs must be a list of plugins' names, such as ['agents']")
	checkDeclared(plugin as Plugin, builtIn)
	declareCodes(plugin.errors ?? {})
	return plugin as Plugin
}

function refuse(name: string, problem: string): never {
	throw pluginInvalid(`plugin "${name}": ${problem}`)
}

/** ` (index.ts:11)` for a syntax error, whose stack begins with its place; empty for other errors. */
function placeOf(error: unknown): string {
	const [, file, line] =
		/^(?:file:\/\/)?[^\n]*\/([^/\n?]+)(?:\?[^:\n]*)?:(\d+)\n/.exec((error as Error | null)?.stack ?? '') ?? []
	return file === undefined ? '' : ` (${file}:${line})`
}

/** Whether a path is not part of the plugin's own code: node_modules, and names that begin with a dot. */
function isExcluded(path: string): boolean {
	const name = basename(path)
	return name === 'node_modules' || name.startsWith('.')
}

/** A hash of every file in the folder, without node_modules and dot files, and of the list of installed packages. */
async function digest(folder: string): Promise<string> {
	const hash = createHash('sha256')
	let bytes = 0
	const names: string[] = []
	const limit = (isOver: boolean, maximum: string): void => {
		if (isOver) throw pluginInvalid(`${folder} holds more than ${maximum}; keep only the plugin's own files there`)
	}
	for (const name of entriesIn(folder, (path) => !isExcluded(path))) {
		if (!isExcluded(name)) names.push(name)
		limit(names.length > FILE_LIMIT, `${FILE_LIMIT} files`)
	}
	for (const name of names.toSorted()) {
		const file = join(folder, name)
		const info = await stat(file).catch(() => undefined)
		if (!info?.isFile()) continue
		bytes += info.size
		limit(bytes > BYTE_LIMIT, `${BYTE_LIMIT / 1024 / 1024} MiB`)
		hash.update(`${name}\0${info.size}\0`).update(await readFile(file))
	}
	return hash.update(await installedIn(folder)).digest('hex')
}
