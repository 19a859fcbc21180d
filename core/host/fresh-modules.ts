/**
 * Makes Node read the code of a plugin's folder again. Node caches a module by its URL, so each load adds its own query to the
 * URL, and a hook passes the query on from the importing file to the other files of the folder. Files outside are shared as
 * usual. So are packages in a node_modules of the folder, until other packages are installed there.
 */
import { readFile } from 'node:fs/promises'
import { createRequire, registerHooks } from 'node:module'
import { join, sep } from 'node:path'
import { pathToFileURL } from 'node:url'
import { types } from 'node:util'
import { importOwn } from '../util/own-code.ts'

interface Packages {
	installed: string
	/** The query of their URLs; empty until other packages are installed. */
	query: string
}

/** By the URL of the folder, with a slash at the end. */
const folders = new Map<string, Packages>()
/** Part of URLs, so that two loaders of one process never use the same URL for different code. */
let count = 0
let hooked = false
const require = createRequire(import.meta.url)

export type FreshModules = ReturnType<typeof freshModules>

/** `folder`: a real path. `installed`: from `installedIn`. */
export function freshModules(folder: string, installed: string) {
	const url = pathToFileURL(folder).href + '/'
	const loaded = Object.keys(require.cache).filter((file) => file.startsWith(folder + sep))
	const isPackage = (file: string): boolean => isPackaged(file.slice(folder.length))
	const known = folders.get(url)
	const hasChanged = known !== undefined && known.installed !== installed
	const hasOldPackages = hasChanged && loaded.some(isPackage)
	if (!known || (hasChanged && !hasOldPackages))
		folders.set(url, { installed, query: hasChanged ? `?packages=${++count}` : '' })
	installHook()
	const query = `?generation=${++count}`
	// CommonJS modules are cached by path, whatever the query.
	const required = new Set(loaded.filter((file) => !isPackage(file)))
	for (const file of required) delete require.cache[file]
	return {
		/** Other packages were installed, but the old ones stay in use: a loaded CommonJS package cannot be loaded again. */
		hasOldPackages,
		/** Imports a file of the folder as it is now. */
		async import(file: string): Promise<{ default?: unknown }> {
			if (required.has(file)) {
				const exported: unknown = require(file)
				if (!types.isModuleNamespaceObject(exported)) return { default: exported }
			}
			// First, since an import would find the exports of these modules unfinished. The import reports their errors.
			for (const module of required) {
				try {
					require(module)
				} catch {}
			}
			return importOwn(new URL(pathToFileURL(file).href + query)) as Promise<{ default?: unknown }>
		},
	}
}

/** The files in node_modules in which npm, pnpm and Yarn record the installed packages. */
const records = ['.package-lock.json', '.modules.yaml', '.yarn-state.yml', '.yarn-integrity']

/** Text that changes when other packages are installed in a plugin's folder. */
export async function installedIn(folder: string): Promise<string> {
	const texts = records.map((name) => readFile(join(folder, 'node_modules', name), 'utf8').catch(() => ''))
	return (await Promise.all(texts)).join('')
}

/** Makes every import slower, so a gateway without third-party plugins does not call it. */
function installHook(): void {
	if (hooked) return
	hooked = true
	registerHooks({
		resolve(specifier, context, next) {
			const resolved = next(specifier, context)
			const parent = context.parentURL ?? ''
			const [query, kind] = /\?(generation|packages)=\d+$/.exec(parent) ?? []
			if (query === undefined || resolved.url.includes('?')) return resolved
			for (const [folder, packages] of folders) {
				if (!resolved.url.startsWith(folder) || !parent.startsWith(folder)) continue
				const isOwn = !isPackaged(resolved.url.slice(folder.length - 1))
				if (isOwn) return kind === 'generation' ? { ...resolved, url: resolved.url + query } : resolved
				return { ...resolved, url: resolved.url + (kind === 'packages' ? query : packages.query) }
			}
			return resolved
		},
	})
}

/** `below`: a path below the plugin's folder, which itself may lie in a node_modules. */
function isPackaged(below: string): boolean {
	return /[\\/]node_modules[\\/]/.test(below)
}
