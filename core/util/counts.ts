/** A count for each name. Names with the count 0 take no memory. */
export class Counts {
	readonly #counts = new Map<string, number>()

	of(name: string): number {
		return this.#counts.get(name) ?? 0
	}

	add(name: string, by = 1): void {
		const count = this.of(name) + by
		if (count > 0) this.#counts.set(name, count)
		else this.#counts.delete(name)
	}
}
