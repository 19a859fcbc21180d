/** From a plugin's name to its code: built in, or a folder whose files are read again whenever one of them changes. */
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { readFile, realpath, stat } from 'node:fs/promises'
import { basename, dirname, join, relative, resolve } from 'node:path'
import { within } from '../util/deadline.ts'
import { entriesIn } from '../util/entries-in.ts'
import { familyOf, reserveFamilies } from '../events/families.ts'
import { Fault, declareCodes, messageOf } from '../errors.ts'
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
	/** Changes when the code did. */
	code: string
	/** A problem that it has although it runs. */
	trouble?: string
	/** `built in`, or the plugin's folder. */
	source: string
}

/** The source of plugins that come with the gateway. */
export const BUILT_IN = 'built in'

/** A file whose top-level await never settles would block every later reload. */
const IMPORT_DEADLINE_MS = 10_000
const OLD_PACKAGES = 'other packages were installed, but those that were loaded before are in use; restart the gateway'
const FILE_LIMIT = 2_000
const BYTE_LIMIT = 32 * 1024 * 1024

export class Loader {
	readonly #builtIn: URL
	readonly #pluginsFolder: string
	readonly #refusal: (folder: string) => string | undefined
	readonly #cache = new Map<string, Loaded>()
	/** The folders that were read last, by plugin. */
	readonly #folders = new Map<string, string>()

	/**
	 * `builtIn`: the folder of built-in plugins; `pluginsFolder`: holds third-party ones by name. `refusal`: why the
	 * code in a folder must not run, asked before it is read; undefined if it may.
	 */
	constructor(builtIn: URL, pluginsFolder: string, refusal: (folder: string) => string | undefined = () => undefined) {
		this.#builtIn = builtIn
		this.#pluginsFolder = pluginsFolder
		this.#refusal = refusal
	}

	/** Whether a plugin of this name comes with the gateway. */
	isBuiltIn(name: string): boolean {
		return existsSync(new URL(`${name}/index.ts`, this.#builtIn))
	}

	/**
	 * `path` names another folder for a third-party plugin; a built-in name always means the built-in one. Returns the cached result while no
	 * file changed. Throws `plugin_invalid`: no such plugin, no entry file, a folder that is
	 * refused, code that does not load, or no plugin in it.
	 */
	async load(name: string, builtIn: boolean, path?: string): Promise<Loaded> {
		const cached = this.#cache.get(name)
		if (builtIn && cached) return cached
		const loaded = builtIn
			? {
					plugin: await importPlugin(name, () => importOwn(new URL(`${name}/index.ts`, this.#builtIn)), true),
					code: BUILT_IN,
					source: BUILT_IN,
				}
			: await this.#loadFolder(name, path ?? name, cached)
		this.#cache.set(name, loaded)
		return loaded
	}

	/** The folder of a third-party plugin, also if its code does not load; undefined if it could not be read. */
	folderOf(name: string): string | undefined {
		return this.#folders.get(name)
	}

	/** Whether the files of a third-party plugin are others than those that were loaded last. */
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
		// Node names modules by their real path, and remembers where a link led at first.
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
				throw new Fault('plugin_invalid', `${messageOf(error)}; ${OLD_PACKAGES}`, { cause: error })
			}
		})
	}
}

let reserved: Promise<void> | undefined

/** Reserves the types of all built-in plugins, of those that are switched off too: so that their events cannot be confused with others. */
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
		throw new Fault('plugin_invalid', `plugin "${name}" does not load: ${messageOf(error)}${placeOf(error)}`, {
			cause: error,
		})
	}
}

/** Of what a declaration may hold, the parts that mean something for a third-party plugin. */
const declarable: ReadonlySet<string> = new Set([
	'description',
	'schema',
	'check',
] satisfies (keyof SettingsDeclaration)[])

/** Undefined if no file declares settings: 0.1.0 did not read a plugin's settings.ts, and it may be the plugin's own. */
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
	throw new Fault('plugin_invalid', `plugin "${name}": ${problem}`)
}

/** ` (index.ts:11)`, for an error in the text of a file: there the first line of the stack is its place, and no message. */
function placeOf(error: unknown): string {
	const [, file, line] =
		/^(?:file:\/\/)?[^\n]*\/([^/\n?]+)(?:\?[^:\n]*)?:(\d+)\n/.exec((error as Error | null)?.stack ?? '') ?? []
	return file === undefined ? '' : ` (${file}:${line})`
}

/** Whether this is not part of the plugin's own code: its packages, and names that begin with a dot. */
function isApart(path: string): boolean {
	const name = basename(path)
	return name === 'node_modules' || name.startsWith('.')
}

/** A hash of every file in the folder, node_modules and dot files left out, and of which packages are installed. */
async function digest(folder: string): Promise<string> {
	const hash = createHash('sha256')
	let bytes = 0
	const names: string[] = []
	const limit = (isOver: boolean, most: string): void => {
		if (isOver)
			throw new Fault('plugin_invalid', `${folder} holds more than ${most}; keep only the plugin's own files there`)
	}
	for (const name of entriesIn(folder, (path) => !isApart(path))) {
		if (!isApart(name)) names.push(name)
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
