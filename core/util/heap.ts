/** A binary heap: the lowest by `rank` comes out first. */
export class Heap<T> {
	readonly #items: T[] = []
	readonly #rank: (item: T) => number

	constructor(rank: (item: T) => number) {
		this.#rank = rank
	}

	get size(): number {
		return this.#items.length
	}

	peek(): T | undefined {
		return this.#items[0]
	}

	push(item: T): void {
		const items = this.#items
		let at = items.push(item) - 1
		while (at > 0) {
			const parent = (at - 1) >> 1
			if (this.#at(parent) <= this.#rank(item)) break
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
			if (child + 1 < items.length && this.#at(child + 1) < this.#at(child)) child++
			if (this.#rank(item) <= this.#at(child)) break
			items[at] = items[child] as T
			at = child
		}
		items[at] = item
		return lowest
	}

	#at(index: number): number {
		return this.#rank(this.#items[index] as T)
	}
}
