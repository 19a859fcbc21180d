/** Reads a page of the log, for every engine. */
import { Fault } from '../errors.ts'
import { matcher, positionOf } from './events.ts'
import type { Cursor, EventEnvelope, LogFilter, LogPage } from './ports.ts'

export interface PageRequest {
	/** The newest durable position that subscribers have received. */
	head: number
	filter: LogFilter
	after: Cursor | null
	limit: number
	reverse: boolean
}

/** A record as a page reads it: one append. */
export interface PageRecord {
	/** Of its last event. */
	position: number
	/** Its events in order, and its size in bytes; null if none of them can match the filter. */
	read(): { events: readonly EventEnvelope[]; size: number } | null
}

/** A page reads at most this many bytes, whatever its filter matches. */
const maxBytes = 8 * 1024 * 1024

/**
 * Returns only events up to `head`. `from`: the records that may hold events after a position, or with `reverse` before it,
 * in that order. One page reads at most `maxRecords` records.
 */
export async function pageOf(
	{ head, filter, after, limit, reverse }: PageRequest,
	from: (after: number) => AsyncIterable<PageRecord>,
	maxRecords: number,
): Promise<LogPage> {
	if (!(limit >= 1)) throw new Fault('invalid_request', 'the limit must be at least 1')
	const matches = matcher(filter)
	const start = after === null ? (reverse ? head + 1 : 0) : positionOf(after, head)
	const entries: LogPage['entries'] = []
	let at = start
	let count = 0
	let bytes = 0
	for await (const { position: last, read } of from(start)) {
		if (!reverse && last > head) break
		if (entries.length >= limit || count >= maxRecords || bytes >= maxBytes) return { entries, next: String(at) }
		count++
		const record = read()
		if (!record) at = last
		const { events, size } = record ?? { events: [], size: 0 }
		bytes += size
		const numbered = events.map((event, index) => ({ position: last - events.length + 1 + index, event }))
		for (const { position, event } of reverse ? numbered.toReversed() : numbered) {
			if (reverse ? position >= start : position <= start) continue
			if (entries.length >= limit) return { entries, next: String(at) }
			at = position
			if (matches(event)) entries.push({ cursor: String(position), event })
		}
	}
	return { entries, next: null }
}
