import { AgedMap } from '../../../core/util/aged-map.ts'

const MAX_BYTES = 32 * 1024 * 1024
const MAX_VALUE_BYTES = 64 * 1024

/** Values that were read or written last, as bytes: at most 32 MiB in all. What is larger than 64 KiB is not kept. */
export class ValueCache {
	/** The one that was used longest ago first. */
	readonly #held = new AgedMap<string, { seq: number; bytes: Buffer }>()
	#total = 0

	/** The bytes of the key's message at this position. */
	get(key: string, seq: number): Buffer | undefined {
		const one = this.#held.get(key)
		if (one?.seq !== seq) return undefined
		this.#held.set(key, one)
		return one.bytes
	}

	set(key: string, seq: number, bytes: Buffer): void {
		this.delete(key)
		if (bytes.length > MAX_VALUE_BYTES) return
		this.#held.set(key, { seq, bytes })
		this.#total += bytes.length
		while (this.#total > MAX_BYTES) this.#total -= this.#held.takeOldest()?.[1].bytes.length ?? this.#total
	}

	delete(key: string): void {
		this.#total -= this.#held.get(key)?.bytes.length ?? 0
		this.#held.delete(key)
	}
}
