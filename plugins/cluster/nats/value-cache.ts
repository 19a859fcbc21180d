import { AgedMap } from '../../../core/util/aged-map.ts'

const MAX_BYTES = 32 * 1024 * 1024
const MAX_VALUE_BYTES = 64 * 1024

/** The most recently used values, as bytes: at most 32 MiB in all. Values larger than 64 KiB are not cached. */
export class ValueCache {
	/** Least recently used first. */
	readonly #values = new AgedMap<string, { seq: number; bytes: Buffer }>()
	#total = 0

	/** Undefined if the key's value at this position is not cached. */
	get(key: string, seq: number): Buffer | undefined {
		const one = this.#values.get(key)
		if (one?.seq !== seq) return undefined
		this.#values.set(key, one)
		return one.bytes
	}

	set(key: string, seq: number, bytes: Buffer): void {
		this.delete(key)
		if (bytes.length > MAX_VALUE_BYTES) return
		this.#values.set(key, { seq, bytes })
		this.#total += bytes.length
		while (this.#total > MAX_BYTES) this.#total -= this.#values.takeOldest()?.[1].bytes.length ?? this.#total
	}

	delete(key: string): void {
		this.#total -= this.#values.get(key)?.bytes.length ?? 0
		this.#values.delete(key)
	}
}
