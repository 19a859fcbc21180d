/** The number of memories of an agent, counted once and then kept up to date, so that checking the limit is cheap. */
import { Fault } from '../../core/errors.ts'
import type { Store } from '../../core/store/ports.ts'
import { BoundedMap } from '../../core/util/bounded-map.ts'
import { keys } from './records.ts'

export interface Counts {
	/** Settles when no counting is running: removals after that are counted correctly. */
	settled(uid: string): Promise<unknown>
	/** Reserves one more, before it is written. Throws `conflict` if there are already `most`. */
	reserve(uid: string, most: number): Promise<void>
	/** Adjusts for memories that were reserved but not written, deleted, merged or restored. */
	add(uid: string, difference: number): void
	/** Counts again the next time. */
	forget(uid: string): void
}

const KEPT = 10_000

interface Count {
	/** The number in the store, when it was counted. */
	counted: Promise<number>
	since: number
}

export function countsOf(store: Pick<Store, 'keys'>): Counts {
	const counts = new BoundedMap<string, Count>(KEPT)

	const of = (uid: string): Count => {
		let known = counts.get(uid)
		if (!known) {
			counts.set(uid, (known = { counted: countAll(store, uid), since: 0 }))
			known.counted.catch(() => counts.delete(uid))
		}
		return known
	}

	return {
		settled: async (uid) => counts.get(uid)?.counted,
		async reserve(uid, most) {
			const known = of(uid)
			const all = (await known.counted) + known.since
			if (all >= most) {
				throw new Fault(
					'conflict',
					`the agent has ${all} memories, and memory.max_per_agent is ${most}; forget some, compact them, or raise the limit`,
				)
			}
			known.since++
		},
		add(uid, difference) {
			const known = counts.get(uid)
			if (known) known.since += difference
		},
		forget: (uid) => void counts.delete(uid),
	}
}

/** Lists every memory. */
export async function countAll(store: Pick<Store, 'keys'>, uid: string): Promise<number> {
	let found = 0
	for await (const _ of store.keys(keys.memories(uid))) found++
	return found
}
