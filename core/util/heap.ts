/** A binary heap: `pop` returns the item that is before all others. */
export class Heap<T> {
	readonly #items: T[] = []
	readonly #isBefore: (a: T, b: T) => boolean

	constructor(isBefore: (a: T, b: T) => boolean) {
		this.#isBefore = isBefore
	}

	get size(): number {
		return this.#items.length
	}

	/** In no particular order. */
	get items(): readonly T[] {
		return this.#items
	}

	peek(): T | undefined {
		return this.#items[0]
	}

	push(item: T): void {
		const items = this.#items
		let at = items.push(item) - 1
		while (at > 0) {
			const parent = (at - 1) >> 1
			if (!this.#isBefore(item, items[parent] as T)) break
			items[at] = items[parent] as T
			at = parent
		}
		items[at] = item
	}

	pop(): T | undefined {
		const items = this.#items
		const lowest = items[0]
		const item = items.pop()
		if (item === undefined || items.length === 0) return lowest
		let at = 0
		for (;;) {
			let child = 2 * at + 1
			if (child >= items.length) break
			if (child + 1 < items.length && this.#isBefore(items[child + 1] as T, items[child] as T)) child++
			if (!this.#isBefore(items[child] as T, item)) break
			items[at] = items[child] as T
			at = child
		}
		items[at] = item
		return lowest
	}
}
