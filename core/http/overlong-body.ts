/** Lets hapi answer a request whose body is too large, and closes a connection on which far too much follows. */
import type { IncomingMessage } from 'node:http'
import type { Request } from '@hapi/hapi'

/**
 * How much is read and dropped above the limit: hapi answers only then, and a client reads the answer only once it has sent the
 * rest. Enough for the largest attachments of one message, as base64.
 */
const REST_BYTES = 56 * 1024 * 1024

/** Must be called before hapi reads the body. The time is bounded by the `requestTimeout` of the listener. */
export function answerOverlongBody(request: Request): void {
	const { headers, route } = request
	const { req } = request.raw
	const { maxBytes = 0, output } = route.settings.payload ?? {}
	if (output !== 'data') return
	// hapi reads all of it before it answers.
	if (Number(headers['content-length']) > maxBytes) return dropUpTo(maxBytes + REST_BYTES, req)
	if (headers['transfer-encoding'] === undefined) return
	let bytes = 0
	// On its own, hapi destroys the request at the limit, and with it the connection, before it sends the answer. This listener
	// makes hapi read a copy of the stream. At the limit it destroys only the copy, and reads the rest before it answers.
	request.events.on('peek', (chunk: string | Buffer) => {
		const before = bytes
		bytes += chunk.length
		if (before <= maxBytes && bytes > maxBytes) dropUpTo(REST_BYTES, req)
	})
}

/** Reads and drops the body, and ends the connection once it exceeds `limit` bytes. */
function dropUpTo(limit: number, req: IncomingMessage): void {
	let bytes = 0
	req.on('data', (part: Buffer) => {
		bytes += part.length
		if (bytes > limit) req.destroy()
	})
}
