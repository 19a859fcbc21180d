/** A queue in which owners, such as agents, take turns. The items of one owner stay in order, those in the background last. */
export class FairQueue<T> {
	/** In the order of turns. */
	readonly #queues = new Map<string, { items: Set<T>; background: Set<T> }>()
	#size = 0

	get size(): number {
		return this.#size
	}

	sizeOf(owner: string): number {
		const queue = this.#queues.get(owner)
		return queue ? queue.items.size + queue.background.size : 0
	}

	add(owner: string, item: T, isBackground = false): void {
		const queue = this.#queues.get(owner) ?? { items: new Set<T>(), background: new Set<T>() }
		this.#queues.set(owner, queue)
		;(isBackground ? queue.background : queue.items).add(item)
		this.#size++
	}

	/** False if it is not in the queue. */
	delete(owner: string, item: T): boolean {
		const queue = this.#queues.get(owner)
		if (!queue?.items.delete(item) && !queue?.background.delete(item)) return false
		this.#size--
		if (this.sizeOf(owner) === 0) this.#queues.delete(owner)
		return true
	}

	/** Removes and returns the oldest item of the next owner for whom `may` is true. That owner's next turn is after all others. */
	next(may: (owner: string) => boolean = () => true): T | undefined {
		for (const [owner, queue] of this.#queues) {
			if (!may(owner)) continue
			const [item] = (queue.items.size > 0 ? queue.items : queue.background) as Set<T> & Iterable<T>
			if (item === undefined) continue
			this.delete(owner, item)
			this.#queues.delete(owner)
			if (queue.items.size + queue.background.size > 0) this.#queues.set(owner, queue)
			return item
		}
		return undefined
	}

	/** Whether `next` would return an item. */
	has(may: (owner: string) => boolean): boolean {
		for (const owner of this.#queues.keys()) if (may(owner)) return true
		return false
	}
}
