import { setImmediate as turn } from 'node:timers/promises'
import type { EventBus } from '../../core/events/event-bus.ts'
import type { AuditPage, AuditRequest } from './contract.ts'

/** Pages of the log per response. With a filter that matches almost nothing, a request would otherwise take too long. */
const READ_LIMIT = 20
/** Characters per response. A page ends after them, even with fewer events than requested. */
const CHARACTER_LIMIT = 8 * 1024 * 1024

/** Reads backwards from the cursor (null: from the newest event) until the page is full or the limit of pages is reached. */
export async function readAudit(events: EventBus, { filter, cursor, limit }: AuditRequest): Promise<AuditPage> {
	const page: AuditPage = { events: [], next_cursor: cursor }
	let characters = 0
	for (let reads = 0; reads < READ_LIMIT; reads++) {
		if (reads > 0) await turn()
		const { entries, next } = await events.read(filter, page.next_cursor, limit - page.events.length, true)
		page.events.push(...entries.map(({ event }) => event))
		page.next_cursor = next
		for (const { event } of entries) characters += JSON.stringify(event.payload).length
		if (next === null || page.events.length >= limit || characters >= CHARACTER_LIMIT) break
	}
	return page
}
