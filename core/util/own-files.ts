/** Parts of built-in plugins, which are found by the name of their file: core names no plugin. */
import { existsSync, readdirSync } from 'node:fs'
import { importOwn } from './own-code.ts'

/** The plugins that have a file of this name, sorted, with its address. */
export function ownFiles(name: string): Map<string, URL> {
	const folder = new URL('../../plugins/', import.meta.url)
	const files = readdirSync(folder)
		.toSorted()
		.map((plugin) => [plugin, new URL(`${plugin}/${name}`, folder)] as const)
	return new Map(files.filter(([, file]) => existsSync(file)))
}

/** Whether there is a built-in plugin of this name. */
export function isBuiltIn(name: string): boolean {
	return existsSync(new URL(`../../plugins/${name}/index.ts`, import.meta.url))
}

/** The default exports of these files, by plugin. */
export async function ownParts<T>(name: string): Promise<Map<string, T>> {
	const load = async ([plugin, file]: [string, URL]): Promise<[string, T]> => [
		plugin,
		((await importOwn(file)) as { default: T }).default,
	]
	return new Map(await Promise.all(Array.from(ownFiles(name), load)))
}
