import { Heap } from '../../../core/util/heap.ts'

export interface Scored {
	ordinal: number
	score: number
}

/** Keeps the highest scores of many, and of equal ones the older memory. */
export class TopScores {
	readonly #limit: number
	/** The lowest first. */
	readonly #heap = new Heap<Scored>((one, other) => isBelow(one, other.ordinal, other.score))

	constructor(limit: number) {
		this.#limit = limit
	}

	/** The lowest kept score; undefined if fewer than the limit were offered. */
	get least(): number | undefined {
		return this.#heap.size < this.#limit ? undefined : this.#heap.peek()?.score
	}

	offer(ordinal: number, score: number): void {
		if (this.#heap.size === this.#limit) {
			// Most scores are rejected here, at no cost.
			if (!isBelow(this.#heap.peek() as Scored, ordinal, score)) return
			this.#heap.pop()
		}
		this.#heap.push({ ordinal, score })
	}

	/** In no order. */
	kept(): readonly Scored[] {
		return this.#heap.items
	}

	/** Best first. */
	sorted(): Scored[] {
		return this.#heap.items.toSorted((a, b) => b.score - a.score || a.ordinal - b.ordinal)
	}
}

function isBelow(one: Scored, ordinal: number, score: number): boolean {
	return one.score < score || (one.score === score && one.ordinal > ordinal)
}
