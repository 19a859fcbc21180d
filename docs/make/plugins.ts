import type { Plugin } from '../../core/plugin.ts'
import { ownParts } from '../../core/util/own-files.ts'

/** The definitions of all built-in plugins, by name. */
export async function builtInPlugins(): Promise<Plugin[]> {
	return [...(await ownParts<Plugin>('index.ts')).values()]
}
