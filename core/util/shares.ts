import { Counts } from './counts.ts'

/** Places that one owner may use alone, and a reserve for the others, so that no owner can occupy all of them. */
export class Shares {
	readonly #places: () => number
	readonly #reserve: () => number
	readonly #held = new Counts()
	#used = 0

	/** `reserve`: places beyond `places`. */
	constructor(places: () => number, reserve: () => number) {
		this.#places = places
		this.#reserve = reserve
	}

	/** Places in use. */
	get used(): number {
		return this.#used
	}

	heldBy(owner: string): number {
		return this.#held.of(owner)
	}

	/**
	 * Whether `owner` may take one more place. Once the places are used up, an owner may hold as many as are left of the reserve:
	 * the first new owner gets at most half of it, the next one half of the rest.
	 */
	may(owner: string): boolean {
		const places = this.#places()
		return this.#used < places || this.heldBy(owner) < places + this.#reserve() - this.#used
	}

	add(owner: string): void {
		this.#used++
		this.#held.add(owner)
	}

	/** To be called once for each `add`. */
	remove(owner: string): void {
		this.#used--
		this.#held.add(owner, -1)
	}
}

/** The default reserve of a limit: a quarter, at least one. */
export function reserveOf(places: number): number {
	return Math.ceil(places / 4)
}
