/** A map that forgets what was not asked for the longest. */
export class Lru<V> {
	readonly #entries = new Map<string, V>()
	readonly #limit: number

	constructor(limit: number) {
		this.#limit = limit
	}

	get(key: string): V | undefined {
		const value = this.#entries.get(key)
		if (value === undefined) return undefined
		this.#entries.delete(key)
		this.#entries.set(key, value)
		return value
	}

	set(key: string, value: V): void {
		this.#entries.delete(key)
		this.#entries.set(key, value)
		if (this.#entries.size <= this.#limit) return
		for (const oldest of this.#entries.keys()) {
			this.#entries.delete(oldest)
			break
		}
	}

	delete(key: string): void {
		this.#entries.delete(key)
	}
}
