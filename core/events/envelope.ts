import { newId, now } from '../util/ids.ts'
import { causeNow } from '../util/context.ts'
import type { NewEvent } from '../protocol.ts'
import type { EventEnvelope } from '../store/ports.ts'

/** Adds to an event what only the main thread may add: id, time and sequence. */
export function inEnvelope(event: NewEvent, agent: string | null, run: string | null, sequence: number): EventEnvelope {
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

/** Adds `payload.actor` if the cause is known. `own`: the agent of the event, which is not named as its actor. */
export function withActor(event: NewEvent, own?: string): NewEvent {
	const actor = causeNow()?.actor
	if (!actor || (actor.kind === 'agent' && actor.id === own)) return event
	return { ...event, payload: { ...event.payload, actor: { ...actor } } }
}
