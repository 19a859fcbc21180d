/**
 * The wanted plugins, loaded and checked. The gateway's start, its reloads and `svc config validate` all call this, so
 * that they cannot disagree.
 */
import { define } from './definition.ts'
import type { SettingProblem } from './definition.ts'
import { Fault } from '../errors.ts'
import type { WantedPlugin } from './desired-state.ts'
import type { Definition } from './instance.ts'
import type { Loader } from './loader.ts'

export interface Definitions {
	/** Definitions of the wanted plugins whose code loads and whose settings and needs are valid. */
	definitions: Definition[]
	/** Mistakes in gateway.yaml, in the order of its plugins. */
	problems: SettingProblem[]
	/** Third-party plugins whose code cannot be used, and why. */
	broken: Map<string, unknown>
}

/** Throws if the code of a built-in plugin does not load. */
export async function definitionsOf(plugins: readonly WantedPlugin[], loader: Loader): Promise<Definitions> {
	const definitions: Definition[] = []
	const problems: SettingProblem[] = []
	const broken = new Map<string, unknown>()
	const wanted = new Set(plugins.map(({ name }) => name))
	for (const one of plugins) {
		const { name, builtIn, path } = one
		try {
			const loaded = await loader.load(name, builtIn, path)
			const found = define(one, loaded)
			const wrong = Array.isArray(found) ? found : unmetNeeds(found, wanted, loader)
			problems.push(...wrong)
			if (!Array.isArray(found) && wrong.length === 0) definitions.push(found)
		} catch (error) {
			if (builtIn) throw error
			broken.set(name, error)
		}
	}
	const needs = new Map(definitions.map(({ plugin }) => [plugin.name, plugin.needs ?? []]))
	for (const name of needs.keys()) {
		const ring = ringThrough(name, needs)
		if (ring)
			broken.set(name, new Fault('plugin_invalid', `the plugins need each other in a ring: ${ring.join(' → ')}`))
	}
	return { definitions: definitions.filter(({ plugin }) => !broken.has(plugin.name)), problems, broken }
}

function unmetNeeds({ plugin }: Definition, wanted: ReadonlySet<string>, loader: Loader): SettingProblem[] {
	const { name, needs = [] } = plugin
	return needs
		.filter((need) => !wanted.has(need))
		.map((need) => ({
			plugin: name,
			// A built-in plugin runs unless the file switches it off; a third-party one may be absent from the file.
			path: `plugins.${loader.isBuiltIn(need) ? need : name}`,
			message: `plugin "${name}" needs plugin "${need}", which is not switched on; set plugins.${need} to true, or plugins.${name} to false`,
			part: 'value',
		}))
}

/** `a → b → a` for a plugin that needs itself, directly or not. */
function ringThrough(name: string, needs: ReadonlyMap<string, readonly string[]>): string[] | undefined {
	const seen = new Set<string>()
	const search = (path: string[]): string[] | undefined => {
		for (const need of needs.get(path.at(-1) ?? '') ?? []) {
			if (need === name) return [...path, need]
			if (seen.has(need)) continue
			seen.add(need)
			const ring = search([...path, need])
			if (ring) return ring
		}
		return undefined
	}
	return search([name])
}
