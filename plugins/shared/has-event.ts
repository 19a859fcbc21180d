import type { EventBus } from '../../core/events/event-bus.ts'
import type { EventEnvelope, LogFilter } from '../../core/store/ports.ts'

/** Whether the log has such an event, the newest first: it may have been emitted before a crash. */
export async function hasEvent(
	events: Pick<EventBus, 'read'>,
	filter: LogFilter,
	is: (event: EventEnvelope) => boolean,
): Promise<boolean> {
	let cursor: string | null = null
	do {
		const { entries, next } = await events.read(filter, cursor, 100, true)
		if (entries.some(({ event }) => is(event))) return true
		cursor = next
	} while (cursor !== null)
	return false
}
