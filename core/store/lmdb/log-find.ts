import { timeOfId } from '../../util/ids.ts'
import type { Cursor } from '../ports.ts'
import { readRecord } from './log-record.ts'
import { findRecord } from './record.ts'
import type { Tables } from './tables.ts'
import { keyBatches, keyNumber, keysOf, numberKey } from './tables.ts'
import type { Writer } from './writer.ts'

/**
 * An event may wait for the disk while others that were made later are written, so the log's order of time is only
 * approximate: the search begins this much before the event, and ends this much after it.
 */
const EARLIEST_MS = 1_000
const LATEST_MS = 60_000
/** How many records one search reads, besides the 50 or so of the binary search. */
const RECORDS = 10_000
const CHUNK = 100

/**
 * The position of the event with this id; null if the log does not contain it, as for an event that was never stored. The id is a
 * UUIDv7, so it contains the time of the event, and the log is in order of time: no index is needed.
 */
export async function findEvent(
	{ log }: Tables,
	writer: Writer,
	{ head, event_id }: { head: number; event_id: string },
): Promise<Cursor | null> {
	writer.mustBeOpen()
	const time = timeOfId(event_id)
	if (time === undefined) return null
	const end = numberKey(head + 1)
	const firstFrom = (position: number): string | undefined => keysOf(log, { start: numberKey(position), end }, 1)[0]
	const stampAt = (key: string): number => findRecord(log, key)?.stamp ?? 0

	let [low, high] = [1, head + 1]
	while (low < high) {
		const middle = Math.floor((low + high) / 2)
		const key = firstFrom(middle)
		if (key === undefined || stampAt(key) >= time - EARLIEST_MS) high = middle
		else low = keyNumber(key) + 1
	}
	const wanted = Buffer.from(event_id)
	let read = 0
	for await (const keys of keyBatches({ table: log, writer }, { start: numberKey(low), end }, CHUNK)) {
		for (const key of keys) {
			const found = findRecord(log, key)
			if (!found) continue
			if (found.stamp > time + LATEST_MS) return null
			// Far cheaper than decoding each record.
			if (!found.bytes.includes(wanted)) continue
			const record = readRecord(log, key)
			const at = record?.entries.findIndex(({ event }) => event.event_id === event_id) ?? -1
			if (record && at >= 0) return String(record.first + at)
		}
		read += keys.length
		if (read >= RECORDS) return null
	}
	return null
}
