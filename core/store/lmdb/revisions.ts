import type { Tables } from './tables.ts'
import { headerBytes, seal } from './frame.ts'
import { findRecord } from './read.ts'
import type { Write } from './writer.ts'

/** So many revisions are marked as taken at a time, and so many at most are lost at a restart, of 2^53. */
const block = 2 ** 20
const key = 'revisions'

export interface RevisionCounter {
	next(): number
	/**
	 * Adds to `writes`, which carry the revisions given out before, what must become durable together with them. Call
	 * what it answers with once the writes are accepted.
	 */
	cover(writes: Write[]): () => void
}

/** Goes on behind the last block that the process before took, so that no revision is ever given out twice. */
export function openRevisions({ meta }: Tables): RevisionCounter {
	let covered = findRecord(meta, key)?.stamp ?? 0
	let last = covered
	return {
		next: () => ++last,
		cover(writes) {
			if (last <= covered) return () => {}
			const taken = last + block
			writes.push({ table: meta, key, bytes: seal(key, taken, Buffer.alloc(headerBytes)) })
			return () => {
				covered = taken
			}
		},
	}
}
