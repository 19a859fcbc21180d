/** The number of memories of an agent, counted once and then kept up to date, so that checking the limit is cheap. */
import { Fault } from '../../core/errors.ts'
import type { Store } from '../../core/store/ports.ts'
import { BoundedMap } from '../../core/util/bounded-map.ts'
import { keys } from './records.ts'

const KEPT = 10_000

interface Count {
	/** The number in the store, when it was counted. */
	counted: Promise<number>
	/** The change since then. */
	since: number
}

export class Counts {
	readonly #store: Pick<Store, 'keys'>
	readonly #counts = new BoundedMap<string, Count>(KEPT)

	constructor(store: Pick<Store, 'keys'>) {
		this.#store = store
	}

	/** Wait for this before a removal: a count in progress may or may not include the removed memory. */
	async settled(uid: string): Promise<void> {
		await this.#counts.get(uid)?.counted
	}

	/** Reserves one more, before it is written. Throws `conflict` if there are already `most`. */
	async reserve(uid: string, most: number): Promise<void> {
		let known = this.#counts.get(uid)
		if (!known) {
			this.#counts.set(uid, (known = { counted: countAll(this.#store, uid), since: 0 }))
			known.counted.catch(() => this.#counts.delete(uid))
		}
		const all = (await known.counted) + known.since
		if (all >= most) {
			throw new Fault(
				'conflict',
				`the agent has ${all} memories, and memory.max_per_agent is ${most}; forget some, compact them, or raise the limit`,
			)
		}
		known.since++
	}

	/** Adjusts for memories that were reserved but not written, deleted, merged or restored. */
	add(uid: string, difference: number): void {
		const known = this.#counts.get(uid)
		if (known) known.since += difference
	}

	/** The next `reserve` counts again. */
	forget(uid: string): void {
		this.#counts.delete(uid)
	}
}

/** Lists every memory. */
export async function countAll(store: Pick<Store, 'keys'>, uid: string): Promise<number> {
	let found = 0
	for await (const _ of store.keys(keys.memories(uid))) found++
	return found
}
