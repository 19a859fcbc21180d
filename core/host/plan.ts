/**
 * What a reload would do, decided before anything is done. Pure: running and wanted go in, a plan comes out.
 */
import { Fault } from '../errors.ts'

export interface PlanItem {
	name: string
	/** Equal fingerprints mean: same code, same settings, nothing to do. */
	fingerprint: string
	needs: readonly string[]
}

export interface Plan {
	/** Wanted ones in dependency order: what an item needs stands before it. */
	order: string[]
	keep: Set<string>
	/** Not running yet. */
	start: Set<string>
	/** Running with another fingerprint. */
	replace: Set<string>
	/** Running and no longer wanted, in the order in which to stop them: dependants first. */
	stop: string[]
}

/** Throws `plugin_invalid` for a missing dependency, a cycle of dependencies, or a duplicate name. */
export function plan(running: readonly PlanItem[], wanted: readonly PlanItem[]): Plan {
	const old = new Map(running.map((item) => [item.name, item]))
	const order = inOrder(wanted)
	const result: Plan = { order, keep: new Set(), start: new Set(), replace: new Set(), stop: [] }
	for (const item of wanted) {
		const before = old.get(item.name)
		if (!before) result.start.add(item.name)
		else if (before.fingerprint === item.fingerprint) result.keep.add(item.name)
		else result.replace.add(item.name)
	}
	const names = new Set(order)
	result.stop = inOrder(running)
		.filter((name) => !names.has(name))
		.toReversed()
	return result
}

/** True if the plan changes nothing. */
export function isIdle(plan: Plan): boolean {
	return plan.start.size === 0 && plan.replace.size === 0 && plan.stop.length === 0
}

function inOrder(items: readonly PlanItem[]): string[] {
	const byName = new Map<string, PlanItem>()
	for (const item of items) {
		if (byName.has(item.name))
			throw new Fault('plugin_invalid', `two plugins are named "${item.name}"; rename one of them`)
		byName.set(item.name, item)
	}
	const done = new Set<string>()
	const visit = (item: PlanItem, path: string[]): void => {
		if (done.has(item.name)) return
		if (path.includes(item.name)) {
			const ring = [...path.slice(path.indexOf(item.name)), item.name].join(' → ')
			throw new Fault('plugin_invalid', `the plugins need each other in a ring: ${ring}`)
		}
		for (const need of item.needs) {
			const needed = byName.get(need)
			if (!needed) {
				throw new Fault(
					'plugin_invalid',
					`plugin "${item.name}" needs plugin "${need}", which is not switched on; set plugins.${need} to true, or plugins.${item.name} to false`,
				)
			}
			visit(needed, [...path, item.name])
		}
		done.add(item.name)
	}
	for (const item of items) visit(item, [])
	return [...done]
}
