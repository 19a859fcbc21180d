import { composition } from '../../core/host/config.ts'
import type { Plugin } from '../../core/plugin.ts'

/** The definitions of all built-in plugins, in the order of configuration. */
export async function builtInPlugins(): Promise<Plugin[]> {
	return Promise.all(
		[...composition.plugins.keys()].map(async (name) => {
			const { default: plugin } = (await import(`../../plugins/${name}/index.ts`)) as { default: Plugin }
			return plugin
		}),
	)
}
