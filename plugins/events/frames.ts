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

/** Bytes ready for any number of sockets: text as one chunk of the HTTP/1.1 chunked coding (RFC 9112, section 7.1). */
export function chunk(text: string): Buffer {
	return Buffer.from(`${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`)
}

/** What is inside a chunk, for HTTP/1.0, which has no chunks. */
export function unchunked(bytes: Buffer): Buffer {
	return bytes.subarray(bytes.indexOf('\n') + 1, -2)
}
