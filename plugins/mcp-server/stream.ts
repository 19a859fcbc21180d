import type { ServerResponse } from 'node:http'
import { chunk, Connection, turnOf } from '../shared/sse.ts'

/**
 * Sends the events of one response. Settles when all events were sent, or when the client has disconnected, which cancels `body`.
 * A client that reads nothing for `stallMs` is disconnected.
 */
export async function stream(
	body: ReadableStream<Uint8Array>,
	response: ServerResponse,
	stallMs: number,
): Promise<void> {
	const reader = body.getReader()
	const socket = await turnOf(response)
	if (!socket) return reader.cancel()
	const left = Promise.withResolvers<void>()
	const connection = new Connection(response, socket, ': open\n', {
		stallMs,
		closed() {
			left.resolve()
			reader.cancel().catch(() => {}) // the body has already failed
		},
	})
	const decoder = new TextDecoder()
	try {
		for (;;) {
			const { done, value } = await reader.read() // also done when it is cancelled
			if (done) return
			connection.write(chunk(decoder.decode(value, { stream: true })))
			await Promise.race([left.promise, new Promise<void>((resolve) => connection.whenReady(resolve))])
		}
	} finally {
		connection.end()
	}
}
