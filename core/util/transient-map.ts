/**
 * A map whose entries stay only for a moment, such as the runs in progress. V8 copies a map to a new table now and then. The old
 * tables of a long-lived map are in the old space: until the next full collection they keep the entries that were copied, and
 * everything that those refer to. Here each value is in a cell, which is cleared when the entry is deleted. Without that, 14 KiB of
 * each run were copied to the old space instead of 6.
 */
export class TransientMap<K, V> {
	readonly #cells = new Map<K, { value: V | undefined }>()

	get size(): number {
		return this.#cells.size
	}

	has(key: K): boolean {
		return this.#cells.has(key)
	}

	get(key: K): V | undefined {
		return this.#cells.get(key)?.value
	}

	set(key: K, value: V): void {
		const cell = this.#cells.get(key)
		if (cell) cell.value = value
		else this.#cells.set(key, { value })
	}

	/** False if there is no such entry. */
	delete(key: K): boolean {
		const cell = this.#cells.get(key)
		if (!cell) return false
		cell.value = undefined
		return this.#cells.delete(key)
	}

	/** In the order in which the keys were added. */
	*values(): Generator<V> {
		for (const { value } of this.#cells.values()) yield value as V
	}
}
