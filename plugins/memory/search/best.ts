export interface Scored {
	ordinal: number
	score: number
}

/** Keeps the highest scores of many, in a heap whose root is the lowest of them. Of equal ones the older memory stays. */
export class Best {
	readonly #limit: number
	/** Two arrays of numbers rather than one of objects, which each kept offer would allocate. */
	readonly #scores: Float64Array
	readonly #ordinals: Uint32Array
	#count = 0

	constructor(limit: number) {
		this.#limit = limit
		this.#scores = new Float64Array(limit)
		this.#ordinals = new Uint32Array(limit)
	}

	offer(ordinal: number, score: number): void {
		if (this.#count < this.#limit) this.#up(this.#count++, ordinal, score)
		// Most scores are rejected here, at no cost.
		else if (isBelow(this.#scores[0] as number, this.#ordinals[0] as number, score, ordinal)) this.#down(ordinal, score)
	}

	/** Best first. Nothing is kept afterwards. */
	take(): Scored[] {
		const found: Scored[] = []
		while (this.#count > 0) {
			found.push({ ordinal: this.#ordinals[0] as number, score: this.#scores[0] as number })
			const last = --this.#count
			if (last > 0) this.#down(this.#ordinals[last] as number, this.#scores[last] as number)
		}
		return found.reverse()
	}

	/** Places it at `from`, a free place, or above. */
	#up(from: number, ordinal: number, score: number): void {
		const [scores, ordinals] = [this.#scores, this.#ordinals]
		let at = from
		while (at > 0) {
			const parent = (at - 1) >> 1
			if (!isBelow(score, ordinal, scores[parent] as number, ordinals[parent] as number)) break
			scores[at] = scores[parent] as number
			ordinals[at] = ordinals[parent] as number
			at = parent
		}
		scores[at] = score
		ordinals[at] = ordinal
	}

	/** Replaces the root by it. */
	#down(ordinal: number, score: number): void {
		const [scores, ordinals] = [this.#scores, this.#ordinals]
		const count = this.#count
		let at = 0
		while (2 * at + 1 < count) {
			const [left, right] = [2 * at + 1, 2 * at + 2]
			const child = right < count && this.#isBelow(right, left) ? right : left
			if (!isBelow(scores[child] as number, ordinals[child] as number, score, ordinal)) break
			scores[at] = scores[child] as number
			ordinals[at] = ordinals[child] as number
			at = child
		}
		scores[at] = score
		ordinals[at] = ordinal
	}

	#isBelow(one: number, other: number): boolean {
		const [scores, ordinals] = [this.#scores, this.#ordinals]
		return isBelow(scores[one] as number, ordinals[one] as number, scores[other] as number, ordinals[other] as number)
	}
}

function isBelow(score: number, ordinal: number, otherScore: number, otherOrdinal: number): boolean {
	return score < otherScore || (score === otherScore && ordinal > otherOrdinal)
}
