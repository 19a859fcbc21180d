import type { Tables } from './tables.ts'
import { findRecord, sealStamp } from './record.ts'
import type { Write } from './writer.ts'

/** The number of revisions reserved at a time, which is also the most that a restart loses, of 2^53. */
const block = 2 ** 20
const key = 'revisions'

export interface RevisionCounter {
	next(): number
	/**
	 * Adds to `writes`, which carry the latest revisions, the write that must become durable together with them. Call the returned
	 * function once the writes are accepted.
	 */
	cover(writes: Write[]): () => void
}

/** Continues after the last block that the previous process reserved, so that no revision is ever used twice. */
export function openRevisions({ meta }: Tables): RevisionCounter {
	let covered = findRecord(meta, key)?.stamp ?? 0
	let last = covered
	return {
		next: () => ++last,
		cover(writes) {
			if (last <= covered) return () => {}
			const taken = last + block
			writes.push({ table: meta, key, bytes: sealStamp(key, taken) })
			return () => {
				covered = taken
			}
		},
	}
}
