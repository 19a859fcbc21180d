/**
 * The newest records of the log, in memory. A server that answers a read may be behind the leader by some milliseconds, so
 * what is new is never read from the cluster.
 */

/** A record as it is stored; it is decoded for each reader. */
export interface RecentRecord {
	seq: number
	run: string | null
	data: Buffer
}

export type Recent = ReturnType<typeof openRecent>

/** What is dropped first is the oldest; nothing younger than this, unless there is too much of it. */
const KEEP_MS = 10_000
const RECORDS = 4096
const BYTES = 16 * 1024 * 1024
const MAX_BYTES = 64 * 1024 * 1024

/** `from`: the position from which on records will be added. */
export function openRecent(from: number) {
	let start = from
	let held: { record: RecentRecord; at: number }[] = []
	let bytes = 0
	return {
		/** Every record of the log from this position on is here. */
		from: () => start,
		/** The next record; positions rise. */
		add(record: RecentRecord): void {
			const now = performance.now()
			held.push({ record, at: now })
			bytes += record.data.length
			let drop = 0
			let left = bytes
			for (const { record, at } of held) {
				const isMany = held.length - drop > RECORDS || left > BYTES
				if (!isMany || (now - at < KEEP_MS && left <= MAX_BYTES) || drop === held.length - 1) break
				left -= record.data.length
				drop++
			}
			// Not one at a time: that would copy the list for each record.
			if (drop === 0 || (drop < RECORDS / 8 && left <= MAX_BYTES && bytes <= 2 * BYTES)) return
			bytes = left
			held = held.slice(drop)
			start = held[0]?.record.seq ?? start
		},
		/** In order; with a run its own. */
		records(run?: string): RecentRecord[] {
			const all = held.map(({ record }) => record)
			return run === undefined ? all : all.filter((record) => record.run === run)
		},
		/** These were removed from the log. */
		remove(gone: ReadonlySet<number>): void {
			held = held.filter(({ record }) => !gone.has(record.seq))
			bytes = held.reduce((sum, { record }) => sum + record.data.length, 0)
		},
	}
}
