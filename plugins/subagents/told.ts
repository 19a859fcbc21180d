import type { EventBus } from '../../core/events/event-bus.ts'
import type { LogFilter } from '../../core/store/ports.ts'

/** Whether the log has one of these events about the run `run_id`, the newest first. */
export async function hasEventAbout(
	events: Pick<EventBus, 'read'>,
	filter: LogFilter,
	run_id: string,
): Promise<boolean> {
	let after: string | null = null
	do {
		const page = await events.read(filter, after, 100, true)
		if (page.entries.some(({ event }) => event.payload.run_id === run_id)) return true
		after = page.next
	} while (after !== null)
	return false
}
