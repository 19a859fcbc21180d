import type { Delivery } from '../../core/events.ts'
import type { Cursor } from '../../core/store/ports.ts'

/** Sent first: how many milliseconds a browser waits before it connects again. */
const RETRY_MS = 3000

/** One event as a client reads it. JSON has no line break of its own, so it is always a single `data:` line. */
export function frame(cursor: Cursor, json: string): string {
	return `id: ${cursor}\ndata: ${json}\n\n`
}

/**
 * The same for an event that several filters let through: they hear it one right after another, so remembering the
 * latest makes its text once for all of them.
 */
export function frameMaker(): (delivery: Delivery) => string {
	let latest: Delivery | undefined
	let text = ''
	return (delivery) => {
		if (delivery !== latest) {
			latest = delivery
			text = frame(delivery.cursor, delivery.json())
		}
		return text
	}
}

/** A block with an id and no data is no event, but a client takes the id as its Last-Event-ID: it misses nothing from here on. */
export function greeting(at: Cursor): string {
	return `retry: ${RETRY_MS}\nid: ${at}\n\n`
}

/** A comment, with the position that a client has reached although no event of its filter has told it so. */
export function heartbeat(at: Cursor): string {
	return `: still here\nid: ${at}\n\n`
}
