import { newId, now } from './ids.ts'
import type { NewEvent } from './protocol.ts'
import type { EventEnvelope } from './store/ports.ts'

/** Gives an event what only the main thread may give: id, time and place. */
export function stamp(event: NewEvent, agent: string | null, run: string | null, sequence: number): EventEnvelope {
	return {
		event_id: newId(),
		timestamp: now(),
		agent_id: agent,
		run_id: run,
		sequence,
		event_type: event.event_type,
		payload: event.payload,
	}
}
