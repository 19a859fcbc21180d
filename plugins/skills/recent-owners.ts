/** Owners that used something a moment ago, and may well use it again in a moment. */
import { BoundedMap } from '../../core/util/bounded-map.ts'

export class RecentOwners {
	readonly #within_ms: number
	/** When each used it last. */
	readonly #at: Map<string, number>

	/** Those beyond `limit` that used it longest ago are forgotten. */
	constructor(within_ms: number, limit: number) {
		this.#within_ms = within_ms
		this.#at = new BoundedMap(limit)
	}

	add(owner: string): void {
		this.#at.set(owner, performance.now())
	}

	/** The number of those for whom `which` is true. */
	count(which: (owner: string) => boolean): number {
		const since = performance.now() - this.#within_ms
		let count = 0
		for (const [owner, at] of this.#at) if (at >= since && which(owner)) count++
		return count
	}
}
