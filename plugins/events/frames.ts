import type { Delivery } from '../../core/events/event-bus.ts'
import type { Clearance } from '../../core/redactor/redactor.ts'
import type { Cursor, EventEnvelope } from '../../core/store/ports.ts'

/** The payload of this event contains the name of the secret. */
const REDACTED = 'security.redacted'

/** How long a browser waits before it reconnects, in milliseconds. */
const RETRY_MS = 3000

/**
 * An event as text of the stream. JSON contains no line breaks, so it is one `data:` line. The id follows it: some clients store
 * an id as soon as its line is complete. If the connection broke after that line, they would lose the event.
 */
export function frame(cursor: Cursor, json: string): string {
	return `data: ${json}\nid: ${cursor}\n\n`
}

/** As `frame`, for several feeds. They get an event one right after another, so caching the latest text is enough. */
export function frameMaker(clearance: Clearance): (delivery: Delivery) => string {
	let latest: Delivery | undefined
	let text = ''
	return (delivery) => {
		if (delivery !== latest) {
			latest = delivery
			text = frame(delivery.cursor, jsonFor(clearance, delivery.event, delivery.json))
		}
		return text
	}
}

/** `json`: the event's JSON, if it has already been made. */
export function jsonFor(clearance: Clearance, event: EventEnvelope, json = () => JSON.stringify(event)): string {
	return event.event_type === REDACTED ? JSON.stringify(clearance.event(event)) : clearance.text(json())
}

/**
 * The beginning of a stream. Without an empty line at its end, it is part of the first event's block: some clients mistake a
 * block without data, or a comment before an empty line, for a message. The same applies to `comment`.
 */
export function greeting(isKnown: boolean): string {
	return `${comment(isKnown ? 'connected' : 'unknown position')}retry: ${RETRY_MS}\n`
}

export function comment(text: string): string {
	return `: ${text}\n`
}
