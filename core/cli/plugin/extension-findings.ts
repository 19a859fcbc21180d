/** Problems of a plugin's extensions of built-in plugins, found by the checks in their files `extended.ts`. */
import type { AnyExtension } from '../../host/instance.ts'
import { ownParts } from '../../util/own-files.ts'
import type { Extension, Extensions } from '../../plugin.ts'
import type { PluginFinding } from './check.ts'

/** The default export of `extended.ts`: what the plugin accepts at one of its extension points. */
export interface ExtensionCheck<K extends keyof Extensions = never> {
	point: K
	/** Why the plugin leaves the extension out; null if it does not. `all`: every extension at the point. */
	problem(extension: Extension<K>, all: readonly Extension<K>[]): string | null | Promise<string | null>
}

/** Checks the extensions of `plugin`. `extensions`: those of all plugins at a point. */
export async function extensionFindings(
	plugin: string,
	extensions: (point: string) => readonly AnyExtension[],
): Promise<PluginFinding[]> {
	const checks = [...(await ownParts<ExtensionCheck>('extended.ts')).values()]
	const found = checks.flatMap(({ point, problem }) => {
		const all = extensions(point) as unknown as Extension<never>[]
		const own = all.filter((one) => one.plugin === plugin)
		return own.map(async (extension): Promise<PluginFinding[]> => {
			const why = await problem(extension, all)
			const fix = `correct what it gives to ctx.extend('${String(point)}', …)`
			return why === null
				? []
				: [{ level: 'warning', problem: `what it adds to ${String(point)} is omitted: ${why}`, fix }]
		})
	})
	return (await Promise.all(found)).flat()
}
