/** How many memories an agent has, counted once and kept in step, so that the limit costs nothing to check. */
import { Fault } from '../../core/errors.ts'
import type { Store } from '../../core/store/ports.ts'
import { keys } from './records.ts'

export interface Counts {
	/** Settles when no counting is under way: what is removed only then is counted right. */
	settled(uid: string): Promise<unknown>
	/** Counts one more, before it is written. Throws `conflict` where there are `most` already. */
	reserve(uid: string, most: number): Promise<void>
	/** What was reserved and not written, forgotten, merged or restored. */
	add(uid: string, difference: number): void
	/** Counted anew the next time. */
	forget(uid: string): void
}

const KEPT = 10_000

interface Count {
	/** Of the store, when it was counted. */
	counted: Promise<number>
	since: number
}

export function countsOf(store: Pick<Store, 'list'>): Counts {
	const counts = new Map<string, Count>()

	const of = (uid: string): Count => {
		let known = counts.get(uid)
		if (!known) {
			if (counts.size >= KEPT) counts.delete(counts.keys().next().value ?? '')
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

/** Looks at every one of them. */
export async function countAll(store: Pick<Store, 'list'>, uid: string): Promise<number> {
	let found = 0
	for await (const _ of store.list(keys.memories(uid))) found++
	return found
}
