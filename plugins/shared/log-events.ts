import type { EventBus } from '../../core/events/event-bus.ts'
import type { EventEnvelope, LogFilter } from '../../core/store/ports.ts'

const PAGE = 500

/** The events of the log that match the filter, read in pages. */
export async function* eventsIn(
	events: Pick<EventBus, 'read'>,
	filter: LogFilter,
	newestFirst = false,
): AsyncGenerator<EventEnvelope> {
	let cursor: string | null = null
	do {
		const { entries, next } = await events.read(filter, cursor, PAGE, newestFirst)
		for (const { event } of entries) yield event
		cursor = next
	} while (cursor !== null)
}

/** Whether the log has an event for which `is` returns true, searched newest first: for events that a crash may have lost. */
export async function hasEvent(
	events: Pick<EventBus, 'read'>,
	filter: LogFilter,
	is: (event: EventEnvelope) => boolean,
): Promise<boolean> {
	for await (const event of eventsIn(events, filter, true)) if (is(event)) return true
	return false
}
