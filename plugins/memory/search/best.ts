export interface Scored {
	ordinal: number
	score: number
}

/** Keeps the highest scores of many, in a heap whose root is the lowest of them. Of equal ones the older memory stays. */
export class Best {
	readonly #limit: number
	readonly #heap: Scored[] = []

	constructor(limit: number) {
		this.#limit = limit
	}

	offer(ordinal: number, score: number): void {
		const heap = this.#heap
		if (heap.length < this.#limit) {
			heap.push({ ordinal, score })
			this.#up(heap.length - 1)
			return
		}
		const least = heap[0]
		// Most scores are rejected here, at no cost.
		if (!least || score < least.score || (score === least.score && ordinal > least.ordinal)) return
		heap[0] = { ordinal, score }
		this.#down()
	}

	/** Best first. */
	take(): Scored[] {
		return this.#heap.toSorted((a, b) => b.score - a.score || a.ordinal - b.ordinal)
	}

	#up(from: number): void {
		const heap = this.#heap
		for (let at = from; at > 0;) {
			const parent = (at - 1) >> 1
			if (!isBelow(heap[at] as Scored, heap[parent] as Scored)) return
			;[heap[at], heap[parent]] = [heap[parent] as Scored, heap[at] as Scored]
			at = parent
		}
	}

	#down(): void {
		const heap = this.#heap
		for (let at = 0; ;) {
			let least = at
			for (const child of [2 * at + 1, 2 * at + 2]) {
				if (child < heap.length && isBelow(heap[child] as Scored, heap[least] as Scored)) least = child
			}
			if (least === at) return
			;[heap[at], heap[least]] = [heap[least] as Scored, heap[at] as Scored]
			at = least
		}
	}
}

function isBelow(a: Scored, b: Scored): boolean {
	return a.score < b.score || (a.score === b.score && a.ordinal > b.ordinal)
}
