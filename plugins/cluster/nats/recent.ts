/**
 * The newest records of the log, in memory. A server that answers a read may be some milliseconds behind the leader, so new records
 * are never read from the cluster.
 */

/** A record in its stored form; each reader decodes it. */
export interface RecentRecord {
	seq: number
	run: string | null
	data: Buffer
}

export type Recent = ReturnType<typeof openRecent>

/** The oldest records are dropped first, but none younger than this unless `MAX_BYTES` is exceeded. */
const KEEP_MS = 10_000
const RECORDS = 4096
const BYTES = 16 * 1024 * 1024
const MAX_BYTES = 64 * 1024 * 1024

/** `from`: the position from which on records will be added. */
export function openRecent(from: number) {
	let start = from
	let kept: { record: RecentRecord; at: number }[] = []
	let bytes = 0
	return {
		/** All records of the log from this position on are in memory. */
		from: () => start,
		/** The next record; positions rise. */
		add(record: RecentRecord): void {
			const now = performance.now()
			kept.push({ record, at: now })
			bytes += record.data.length
			let drop = 0
			let left = bytes
			for (const { record, at } of kept) {
				const isMany = kept.length - drop > RECORDS || left > BYTES
				if (!isMany || (now - at < KEEP_MS && left <= MAX_BYTES) || drop === kept.length - 1) break
				left -= record.data.length
				drop++
			}
			// Drops many at a time: each time copies the list.
			if (drop === 0 || (drop < RECORDS / 8 && left <= MAX_BYTES && bytes <= 2 * BYTES)) return
			bytes = left
			kept = kept.slice(drop)
			start = kept[0]?.record.seq ?? start
		},
		/** In order, of one run or of all. */
		records(run?: string): RecentRecord[] {
			const all = kept.map(({ record }) => record)
			return run === undefined ? all : all.filter((record) => record.run === run)
		},
		/** Call this with the positions of records that were removed from the log. */
		remove(seqs: ReadonlySet<number>): void {
			kept = kept.filter(({ record }) => !seqs.has(record.seq))
			bytes = kept.reduce((sum, { record }) => sum + record.data.length, 0)
		},
	}
}
