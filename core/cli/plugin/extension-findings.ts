/** What is wrong with what a plugin adds to the features of built-in plugins, by the checks in their files `extended.ts`. */
import type { AnyExtension } from '../../host/instance.ts'
import { ownParts } from '../../util/own-files.ts'
import type { Extension, Extensions } from '../../plugin.ts'
import type { PluginFinding } from './check.ts'

/** The default export of `extended.ts`: what the plugin accepts at one of its extension points. */
export interface ExtensionCheck<K extends keyof Extensions = never> {
	point: K
	/** Why it leaves the extension out, beside the others at the point, `all`; null if it does not. */
	problem(extension: Extension<K>, all: readonly Extension<K>[]): string | null | Promise<string | null>
}

/** Of what `plugin` adds. `extensions`: what all plugins add at a point. */
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
				: [{ level: 'warning', problem: `what it adds to ${String(point)} is left out: ${why}`, fix }]
		})
	})
	return (await Promise.all(found)).flat()
}
