/** Limits the rate at which owners, such as agents, may start something: `per_second` on average, with bursts of one second's worth. */
import { setTimeout as pause } from 'node:timers/promises'
import { BoundedMap } from './bounded-map.ts'

/** Owners whose pace is tracked at the same time. */
const OWNERS = 1000

/**
 * Returns a function that settles when an owner may start: at once if it is below its rate. The caller must bound how many wait.
 * The rule is the generic cell rate algorithm (ITU-T I.371) in its virtual scheduling form.
 */
export function openPace(per_second: number): (owner: string) => Promise<void> {
	const interval_ms = 1000 / per_second
	/** For each owner, the theoretical arrival time of its next start at an even pace. */
	const even = new BoundedMap<string, number>(OWNERS)
	return async (owner) => {
		const now = performance.now()
		const at = Math.max(even.get(owner) ?? 0, now)
		even.set(owner, at + interval_ms)
		const early_ms = at + interval_ms - now - 1000
		if (early_ms > 0) await pause(early_ms)
	}
}
