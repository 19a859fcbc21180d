import type { Delivery } from '../../core/events/event-bus.ts'
import type { Clearance } from '../../core/redactor/redactor.ts'
import type { Cursor, EventEnvelope } from '../../core/store/ports.ts'

/** An event whose payload names the secret. */
const REDACTED = 'security.redacted'

/** How many milliseconds a browser waits before it connects again. */
const RETRY_MS = 3000

/**
 * One event as a client reads it. JSON has no line break of its own, so it is always a single `data:` line. The id comes after it:
 * some clients note an id as soon as its line is complete, and would lose an event that a broken connection cuts off there.
 */
export function frame(cursor: Cursor, json: string): string {
	return `data: ${json}\nid: ${cursor}\n\n`
}

/**
 * The same for an event that several filters let through: they hear it one right after another, so remembering the
 * latest makes its text once for all of them.
 */
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
 * What a stream begins with. No empty line ends it, so it becomes part of the first event's block: some clients take a block
 * without data, and a comment with an empty line after it, for a message. The same holds for `comment`.
 */
export function greeting(isKnown: boolean): string {
	return `${comment(isKnown ? 'connected' : 'unknown position')}retry: ${RETRY_MS}\n`
}

export function comment(text: string): string {
	return `: ${text}\n`
}
