/** A map of at most `limit` entries: setting one more removes the one that was set or read longest ago. */
export class BoundedMap<K, V> extends Map<K, V> {
	readonly #limit: number

	constructor(limit: number) {
		super()
		this.#limit = limit
	}

	override get(key: K): V | undefined {
		const value = super.get(key)
		if (value !== undefined) this.set(key, value)
		return value
	}

	override set(key: K, value: V): this {
		this.delete(key)
		super.set(key, value)
		if (this.size > this.#limit) this.delete(this.keys().next().value as K)
		return this
	}
}
