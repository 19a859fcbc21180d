/** A queue in which owners, such as agents, take turns; the items of one owner stay in order. */
export class FairQueue<T> {
	/** In the order of turns. */
	readonly #queues = new Map<string, Set<T>>()
	#size = 0

	get size(): number {
		return this.#size
	}

	sizeOf(owner: string): number {
		return this.#queues.get(owner)?.size ?? 0
	}

	add(owner: string, item: T): void {
		const queue = this.#queues.get(owner) ?? new Set()
		this.#queues.set(owner, queue.add(item))
		this.#size++
	}

	/** False if it is not in the queue. */
	delete(owner: string, item: T): boolean {
		const queue = this.#queues.get(owner)
		if (!queue?.delete(item)) return false
		this.#size--
		if (queue.size === 0) this.#queues.delete(owner)
		return true
	}

	/** Removes and returns the oldest item of the next owner for whom `may` is true. That owner's next turn is after all others. */
	next(may: (owner: string) => boolean = () => true): T | undefined {
		for (const [owner, queue] of this.#queues) {
			if (!may(owner)) continue
			const [item] = queue as Set<T> & Iterable<T>
			if (item === undefined) continue
			this.delete(owner, item)
			this.#queues.delete(owner)
			if (queue.size > 0) this.#queues.set(owner, queue)
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
