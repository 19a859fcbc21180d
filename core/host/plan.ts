/** Computes what a reload has to do. Pure. */
import type { Loaded } from './loader.ts'

/** A plugin with checked settings, ready to be started. */
export interface Definition extends Pick<Loaded, 'plugin' | 'source' | 'trouble'> {
	config: unknown
	/** Equal for the same code and the same settings. */
	fingerprint: string
}

/** Names of plugins. */
export interface Plan {
	/** Not running yet. */
	start: string[]
	/** Running, with other code or other settings. */
	replace: string[]
	/** Running and no longer wanted, in the order in which to stop them: dependants first. */
	stop: string[]
}

/** Both lists are in dependency order. */
export function plan(running: readonly Definition[], wanted: readonly Definition[]): Plan {
	const old = new Map(running.map((one) => [one.plugin.name, one]))
	const result: Plan = { start: [], replace: [], stop: [] }
	for (const { plugin, fingerprint } of wanted) {
		const before = old.get(plugin.name)
		if (!before) result.start.push(plugin.name)
		else if (before.fingerprint !== fingerprint) result.replace.push(plugin.name)
		old.delete(plugin.name)
	}
	result.stop = [...old.keys()].toReversed()
	return result
}

/** True if the plan changes nothing. */
export function isIdle({ start, replace, stop }: Plan): boolean {
	return start.length + replace.length + stop.length === 0
}

/**
 * Sorts definitions, whose names must differ, so that a plugin follows the ones that it needs. Leaves out, with the reason:
 * `cycles`, plugins that need themselves directly or indirectly, and `orphans`, which need a plugin that failed or is missing.
 */
export function inOrder(definitions: readonly Definition[]) {
	const byName = new Map(definitions.map((one) => [one.plugin.name, one]))
	const order = new Set<Definition>()
	const orphans = new Map<string, string>()
	const cycles = new Map<string, string>()
	/** `path`: the plugins through which this one was reached; each needs the next. */
	const place = (definition: Definition, path: string[]): void => {
		const { name, needs = [] } = definition.plugin
		if (path.includes(name)) {
			const cycle = [...path.slice(path.indexOf(name)), name]
			const why = `the plugins need each other in a cycle: ${cycle.join(' → ')}; remove one of them from \`needs\`, and call ctx.use where its service is used`
			for (const one of cycle) cycles.set(one, why)
		}
		if (order.has(definition) || orphans.has(name) || cycles.has(name)) return
		for (const need of needs) {
			const needed = byName.get(need)
			if (needed) place(needed, [...path, name])
			if (!needed || !order.has(needed)) orphans.set(name, needsFailed(name, need))
		}
		if (cycles.has(name)) orphans.delete(name)
		else if (!orphans.has(name)) order.add(definition)
	}
	for (const definition of definitions) place(definition, [])
	return { order: [...order], orphans, cycles }
}

/** Why a plugin fails because one that it needs failed. */
export function needsFailed(name: string, need: string): string {
	return `plugin "${name}" needs plugin "${need}", which failed`
}
