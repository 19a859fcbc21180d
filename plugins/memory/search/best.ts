export interface Scored {
	ordinal: number
	score: number
}

/** Keeps the highest scores of many, and of equal ones the older memory. */
export class Best {
	readonly #limit: number
	/** A heap once there are as many as the limit, whose root is the lowest; before, in the order of the offers. */
	readonly #scores: number[] = []
	readonly #ordinals: number[] = []

	constructor(limit: number) {
		this.#limit = limit
	}

	/** The lowest kept score; undefined if fewer than the limit were offered. */
	get least(): number | undefined {
		return this.#scores.length < this.#limit ? undefined : this.#scores[0]
	}

	offer(ordinal: number, score: number): void {
		const [scores, ordinals] = [this.#scores, this.#ordinals]
		if (scores.length < this.#limit) {
			ordinals.push(ordinal)
			if (scores.push(score) === this.#limit) this.#order()
		}
		// Most scores are rejected here, at no cost.
		else if (isBelow(scores[0] as number, ordinals[0] as number, score, ordinal)) this.#place(0, ordinal, score)
	}

	/** In no order. */
	kept(): Scored[] {
		return this.#scores.map((score, at) => ({ ordinal: this.#ordinals[at] as number, score }))
	}

	/** Best first. */
	sorted(): Scored[] {
		return this.kept().sort((a, b) => b.score - a.score || a.ordinal - b.ordinal)
	}

	#order(): void {
		for (let at = (this.#limit >> 1) - 1; at >= 0; at--) {
			this.#place(at, this.#ordinals[at] as number, this.#scores[at] as number)
		}
	}

	/** At `from`, in place of what is there, or below. */
	#place(from: number, ordinal: number, score: number): void {
		const [scores, ordinals] = [this.#scores, this.#ordinals]
		const count = scores.length
		let at = from
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
