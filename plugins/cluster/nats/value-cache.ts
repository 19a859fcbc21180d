/** Values that were read or written last, as bytes: at most 32 MiB in all. What is larger than 64 KiB is not kept. */
import { AgedMap } from '../../../core/util/aged-map.ts'

const MAX_BYTES = 32 * 1024 * 1024
const MAX_VALUE_BYTES = 64 * 1024

export interface ValueCache {
	/** The bytes of the key's message at this position. */
	get(key: string, seq: number): Buffer | undefined
	set(key: string, seq: number, bytes: Buffer): void
	delete(key: string): void
}

export function openValueCache(): ValueCache {
	/** The one that was used longest ago first. */
	const held = new AgedMap<string, { seq: number; bytes: Buffer }>()
	let total = 0
	const remove = (key: string): void => {
		const one = held.get(key)
		if (one && held.delete(key)) total -= one.bytes.length
	}
	return {
		get(key, seq) {
			const one = held.get(key)
			if (one?.seq !== seq) return undefined
			held.set(key, one)
			return one.bytes
		},
		set(key, seq, bytes) {
			remove(key)
			if (bytes.length > MAX_VALUE_BYTES) return
			held.set(key, { seq, bytes })
			total += bytes.length
			while (total > MAX_BYTES) total -= held.takeOldest()?.[1].bytes.length ?? total
		},
		delete: remove,
	}
}
