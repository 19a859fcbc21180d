/** Cache of decoded records for `Store.getShared`: at most 4 MiB of stored size, about twice as much in memory. */
import { AgedMap } from '../util/aged-map.ts'
import { freeze } from '../util/freeze.ts'
import type { Entry } from './ports.ts'

const MAX_BYTES = 4 * 1024 * 1024
/** Estimate of the memory that a record takes besides its key and value. */
const OVERHEAD_BYTES = 256

export function openSharedRecords(maxBytes = MAX_BYTES) {
	const cache = new AgedMap<string, { entry: Entry<unknown> | undefined; cost: number }>()
	let total = 0
	/** To be called whenever the record is written. */
	const forget = (key: string): void => {
		const cached = cache.get(key)
		if (cached && cache.delete(key)) total -= cached.cost
	}
	return {
		/** `entry` is undefined for a key that has no record. */
		find: (key: string): { readonly entry: Entry<unknown> | undefined } | undefined => cache.get(key),
		/** Caches an entry of `bytes` stored bytes until `forget`, and returns it, frozen. */
		keep(key: string, entry: Entry<unknown> | undefined, bytes = 0): Entry<unknown> | undefined {
			forget(key)
			freeze(entry)
			const cost = key.length + bytes + OVERHEAD_BYTES
			if (cost > maxBytes) return entry
			cache.set(key, { entry, cost })
			total += cost
			while (total > maxBytes) total -= cache.takeOldest()?.[1].cost ?? total
			return entry
		},
		forget,
	}
}
