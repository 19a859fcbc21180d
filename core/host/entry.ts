import { existsSync, readFileSync } from 'node:fs'
import { join, resolve, sep } from 'node:path'
import { messageOf, pluginInvalid } from '../errors.ts'

/** The first of `name.ts`, `name.js` and `name.mjs` that exists in a plugin's folder. */
export function codeFile(folder: string, name: string): string | undefined {
	return ['ts', 'js', 'mjs'].map((ending) => join(folder, `${name}.${ending}`)).find((file) => existsSync(file))
}

/**
 * The file to load from a plugin's folder: index.ts, index.js or index.mjs, else the target of `exports` or `main` in its
 * package.json. Undefined if the folder has none. Throws `plugin_invalid` if package.json is not JSON.
 */
export function entryOf(folder: string): string | undefined {
	const index = codeFile(folder, 'index')
	if (index !== undefined || !existsSync(join(folder, 'package.json'))) return index
	const { exports, main } = manifestIn(join(folder, 'package.json'))
	const named = targetOf(exports) ?? main
	const file = typeof named === 'string' ? resolve(folder, named) : undefined
	return file?.startsWith(resolve(folder) + sep) && existsSync(file) ? file : undefined
}

function manifestIn(file: string): { exports?: unknown; main?: unknown } {
	try {
		return Object(JSON.parse(readFileSync(file, 'utf8')))
	} catch (error) {
		throw pluginInvalid(`${file} is not valid JSON: ${messageOf(error)}`, error)
	}
}

/** The file that `import` of the package would load. */
function targetOf(exports: unknown): unknown {
	if (typeof exports !== 'object' || exports === null) return exports
	const { '.': self, node, import: imported, default: fallback } = exports as Record<string, unknown>
	return targetOf(self ?? node ?? imported ?? fallback)
}
