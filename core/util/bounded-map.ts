import { AgedMap } from './aged-map.ts'

/**
 * A map of at most `limit` entries: setting one more removes the one that was set or read longest ago. Reads count once the map is
 * half full: before, moving an entry to the end would cost more than many of the maps save.
 */
export class BoundedMap<K, V> extends AgedMap<K, V> {
	readonly #limit: number

	constructor(limit: number) {
		super()
		this.#limit = limit
	}

	override get(key: K): V | undefined {
		const value = super.get(key)
		if (value !== undefined && this.size * 2 > this.#limit) super.set(key, value)
		return value
	}

	override set(key: K, value: V): this {
		super.set(key, value)
		if (this.size > this.#limit) this.takeOldest()
		return this
	}
}
