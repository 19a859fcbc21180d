/**
 * Lets hapi answer a body of unknown length that is over its limit. On its own, hapi destroys the request at the limit, and with
 * it the connection, before it sends the answer.
 */
import type { Request } from '@hapi/hapi'

/** How much is read and dropped after the limit: a client reads the answer only once it has sent the rest. */
const REST_BYTES = 16 * 1024 * 1024

/** Must be called before hapi reads the body. The time is bounded by the `requestTimeout` of the listener. */
export function answerOverlongBody({ events, headers, raw: { req }, route }: Request): void {
	const { maxBytes = 0, output } = route.settings.payload ?? {}
	if (output !== 'data' || headers['transfer-encoding'] === undefined) return
	let bytes = 0
	// This listener makes hapi read a copy of the stream. At the limit it destroys only the copy, and reads the rest before it
	// answers.
	events.on('peek', (chunk: string | Buffer) => {
		const before = bytes
		bytes += chunk.length
		if (before > maxBytes || bytes <= maxBytes) return
		let rest = REST_BYTES
		req.on('data', (part: Buffer) => {
			rest -= part.length
			if (rest < 0) req.destroy()
		})
	})
}
