import { timeOfId } from '../../../core/util/ids.ts'
import type { Client } from './client.ts'
import { isRecordSubject, positionAt, recordOf } from './log-record.ts'
import type { LogRecord } from './log-record.ts'
import { messagesFrom } from './read-stream.ts'
import type { Recent } from './recent.ts'
import type { Names } from './streams.ts'

/** An event may be stored this long before or after the time in its id: clocks differ, and the event may have been queued. */
const EARLIEST_MS = 10_000
const LATEST_MS = 90_000
/** Limit of records that one search reads. */
const RECORDS = 50_000

/** The position of the event with this id, or null. The id contains the event's time, so no index is needed. */
export async function findEvent(
	client: Client,
	names: Names,
	recent: Recent,
	event_id: string,
): Promise<number | null> {
	const time = timeOfId(event_id)
	if (time === undefined) return null
	const wanted = Buffer.from(event_id)
	for (const record of recent.records()) {
		// Much cheaper than decoding each record.
		const position = record.data.includes(wanted) ? positionIn(recordOf(names.events, record), event_id) : null
		if (position !== null) return position
	}
	const start_time = new Date(time - EARLIEST_MS).toISOString()
	let read = 0
	for await (const message of messagesFrom(client, names.events, { start_time })) {
		if (message.time > time + LATEST_MS || ++read > RECORDS) return null
		const isCandidate = message.data.includes(wanted) && isRecordSubject(names, message.subject)
		const position = isCandidate ? positionIn(recordOf(names.events, message), event_id) : null
		if (position !== null) return position
	}
	return null
}

function positionIn({ seq, entries }: LogRecord, event_id: string): number | null {
	const at = entries.findIndex(({ event }) => event.event_id === event_id)
	return at < 0 ? null : positionAt(seq, at)
}
