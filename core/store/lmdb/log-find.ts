import { timeOfId } from '../../util/ids.ts'
import type { Cursor } from '../ports.ts'
import { readRecord } from './log-record.ts'
import { findRecord } from './record.ts'
import type { KeyRange, Tables } from './tables.ts'
import { keyBatches, keyNumber, keysOf, numberKey } from './tables.ts'
import type { Writer } from './writer.ts'

/**
 * An event may wait for the disk while others that were made later are written, so the log's order of time is only
 * approximate: the search begins this much before the event, and ends this much after it.
 */
const EARLIEST_MS = 1_000
const LATEST_MS = 60_000
/** How many records one search reads, besides the 50 or so of the binary one. */
const RECORDS = 10_000
const CHUNK = 100

/**
 * The position of the event with this id; null if the log does not contain it, as for an event that was never stored. The id is a
 * UUIDv7, so it contains the time of the event, and the log is in order of time: no index is needed. After the clock was set
 * back, the order may differ; then only the newest records are searched.
 */
export async function findEvent(
	tables: Tables,
	writer: Writer,
	{ head, event_id }: { head: number; event_id: string },
): Promise<Cursor | null> {
	writer.mustBeOpen()
	const time = timeOfId(event_id)
	if (time === undefined) return null
	const end = numberKey(head + 1)
	const byTime = { start: numberKey(firstSince(tables, head, time - EARLIEST_MS)), end }
	const newest = { start: end, end: numberKey(0), reverse: true }
	return (
		(await search(tables, writer, { event_id, range: byTime, until: time + LATEST_MS })) ??
		(await search(tables, writer, { event_id, range: newest, until: Infinity }))
	)
}

/** The lowest position whose event is not older than `time`, if the log is in order of time. */
function firstSince({ log }: Tables, head: number, time: number): number {
	const end = numberKey(head + 1)
	let [low, high] = [1, head + 1]
	while (low < high) {
		const middle = Math.floor((low + high) / 2)
		const [key] = keysOf(log, { start: numberKey(middle), end }, 1)
		if (key === undefined || (findRecord(log, key)?.stamp ?? 0) >= time) high = middle
		else low = keyNumber(key) + 1
	}
	return low
}

/** Ends at the first record that is newer than `until`. */
async function search(
	{ log }: Tables,
	writer: Writer,
	{ event_id, range, until }: { event_id: string; range: KeyRange; until: number },
): Promise<Cursor | null> {
	const wanted = Buffer.from(event_id)
	let read = 0
	for await (const keys of keyBatches({ table: log, writer }, range, CHUNK)) {
		for (const key of keys) {
			const found = findRecord(log, key)
			if (!found) continue
			if (found.stamp > until) return null
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
