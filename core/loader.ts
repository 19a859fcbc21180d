/** From a plugin's name to its code: built in, or a folder whose files are read anew whenever one of them changes. */
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { readFile, readdir, stat } from 'node:fs/promises'
import { registerHooks } from 'node:module'
import { join, resolve, sep } from 'node:path'
import { pathToFileURL } from 'node:url'
import { within } from './deadline.ts'
import { Fault, messageOf } from './errors.ts'
import type { Plugin } from './plugin.ts'

export interface Loaded {
	plugin: Plugin
	/** Changes when the code did. */
	code: string
	source: string
	/** The folder to watch; null for built-in ones. */
	folder: string | null
}

/** The source of plugins that come with the gateway. */
export const BUILT_IN = 'built in'

/** A file that waits for ever at its top would stop every later reload. */
const IMPORT_DEADLINE_MS = 10_000
const FILE_LIMIT = 2_000
const BYTE_LIMIT = 32 * 1024 * 1024
const entries = ['index.ts', 'index.js', 'index.mjs']

export class Loader {
	readonly #builtIn: URL
	readonly #pluginsFolder: string
	readonly #cache = new Map<string, Loaded>()
	#generation = 0

	/** `builtIn`: the folder of built-in plugins; `pluginsFolder`: where third-party ones lie by name. */
	constructor(builtIn: URL, pluginsFolder: string) {
		this.#builtIn = builtIn
		this.#pluginsFolder = pluginsFolder
	}

	/**
	 * `path` names another folder for a third-party plugin; a built-in name always means the built-in one. Answers from its cache while no
	 * file changed. Throws `plugin_invalid`: no such plugin, no entry file, code that does not load, or no plugin in it.
	 */
	async load(name: string, builtIn: boolean, path?: string): Promise<Loaded> {
		if (builtIn) {
			const cached = this.#cache.get(name)
			if (cached) return cached
			const plugin = await importPlugin(name, new URL(`${name}/index.ts`, this.#builtIn).href)
			return this.#remember(name, { plugin, code: BUILT_IN, source: BUILT_IN, folder: null })
		}
		const folder = path === undefined ? join(this.#pluginsFolder, name) : resolve(this.#pluginsFolder, path)
		const entry = entries.map((file) => join(folder, file)).find((file) => existsSync(file))
		if (entry === undefined) {
			throw new Fault(
				'plugin_invalid',
				`plugin "${name}": there is no built-in plugin of that name and no ${entries.join(' or ')} in ${folder}; correct the name, or set plugins.${name}.path to its folder`,
			)
		}
		const code = await digest(folder)
		const cached = this.#cache.get(name)
		if (cached?.code === code && cached.folder === folder) return cached
		roots.add(pathToFileURL(folder).href + '/')
		installHook()
		const plugin = await importPlugin(name, `${pathToFileURL(entry).href}?generation=${++this.#generation}`)
		return this.#remember(name, { plugin, code, source: folder, folder })
	}

	#remember(name: string, loaded: Loaded): Loaded {
		this.#cache.set(name, loaded)
		return loaded
	}
}

const parts: ReadonlySet<string> = new Set([
	'name',
	'version',
	'needs',
	'exclusive',
	'config',
	'start',
	'guard',
	'http',
	'legacy',
] satisfies (keyof Plugin)[])

async function importPlugin(name: string, url: string): Promise<Plugin> {
	let module: { default?: unknown }
	try {
		module = await within(IMPORT_DEADLINE_MS, 'its code', import(url) as Promise<{ default?: unknown }>)
	} catch (error) {
		throw new Fault('plugin_invalid', `plugin "${name}" does not load: ${messageOf(error)}${placeOf(error)}`, {
			cause: error,
		})
	}
	const plugin = module.default as Partial<Plugin> | undefined
	if (typeof plugin !== 'object' || plugin === null || typeof plugin.name !== 'string') {
		throw new Fault(
			'plugin_invalid',
			`plugin "${name}": its entry must default-export an object with a name (see core/plugin.ts)`,
		)
	}
	if (plugin.name !== name) {
		throw new Fault('plugin_invalid', `plugin "${name}" calls itself "${plugin.name}"; both must be the same`)
	}
	const stranger = Object.keys(plugin).find((key) => !parts.has(key))
	if (stranger !== undefined) {
		throw new Fault(
			'plugin_invalid',
			`plugin "${name}": "${stranger}" is no part of a plugin; there are: ${[...parts].join(', ')}`,
		)
	}
	for (const verb of ['config', 'start', 'guard', 'http', 'legacy'] as const) {
		if (plugin[verb] !== undefined && typeof plugin[verb] !== 'function')
			throw new Fault('plugin_invalid', `plugin "${name}": ${verb} must be a function`)
	}
	return plugin as Plugin
}

/** ` (index.ts:11)`, for an error in the text of a file: there the first line of the stack is its place, and no message. */
function placeOf(error: unknown): string {
	const [, file, line] =
		/^(?:file:\/\/)?[^\n]*\/([^/\n?]+)(?:\?[^:\n]*)?:(\d+)\n/.exec((error as Error | null)?.stack ?? '') ?? []
	return file === undefined ? '' : ` (${file}:${line})`
}

/** Folders of third-party plugins, as URLs with a slash at the end. */
const roots = new Set<string>()
let hooked = false

/**
 * A module is cached by its URL, so a new query makes it be read anew. The hook hands the query of the importing file
 * on to every file in the same plugin folder; what lies outside, or under node_modules, is shared as ever. It makes every
 * import slower, so a gateway without such plugins goes without.
 */
function installHook(): void {
	if (hooked) return
	hooked = true
	registerHooks({
		resolve(specifier, context, next) {
			const resolved = next(specifier, context)
			const generation = /\?generation=\d+$/.exec(context.parentURL ?? '')?.[0]
			if (generation === undefined || resolved.url.includes('/node_modules/') || resolved.url.includes('?'))
				return resolved
			const inside = [...roots].some((root) => resolved.url.startsWith(root) && context.parentURL?.startsWith(root))
			return inside ? { ...resolved, url: resolved.url + generation } : resolved
		},
	})
}

/** A hash of every file in the folder, node_modules and dot files left out. */
async function digest(folder: string): Promise<string> {
	const hash = createHash('sha256')
	let bytes = 0
	const names = (await readdir(folder, { recursive: true }))
		.filter((name) => !name.split(sep).some((part) => part === 'node_modules' || part.startsWith('.')))
		.toSorted()
	if (names.length > FILE_LIMIT)
		throw new Fault('plugin_invalid', `${folder} holds more than ${FILE_LIMIT} files; keep only the plugin's own there`)
	for (const name of names) {
		const file = join(folder, name)
		const info = await stat(file)
		if (!info.isFile()) continue
		bytes += info.size
		if (bytes > BYTE_LIMIT)
			throw new Fault(
				'plugin_invalid',
				`${folder} holds more than ${BYTE_LIMIT / 1024 / 1024} MiB; keep only the plugin's own files there`,
			)
		hash.update(`${name}\0${info.size}\0`).update(await readFile(file))
	}
	return hash.digest('hex')
}
