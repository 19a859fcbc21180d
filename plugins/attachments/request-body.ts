import type { IncomingMessage } from 'node:http'

/**
 * Its bytes as they come, within the server's time limit for a request, until `signal` aborts. What is left when nobody wants
 * more is read and dropped, since a client that still sends does not see the answer.
 */
export async function* bodyOf(request: IncomingMessage, signal: AbortSignal): AsyncGenerator<Uint8Array> {
	const parts: AsyncIterator<Uint8Array> = request.iterator({ destroyOnReturn: false })
	let fail: (reason: unknown) => void = () => {}
	signal.addEventListener('abort', () => fail(signal.reason))
	try {
		for (;;) {
			signal.throwIfAborted()
			// A promise for each part: one that all parts race with would keep them in memory until the end.
			const next = Promise.withResolvers<IteratorResult<Uint8Array>>()
			fail = next.reject
			parts.next().then(next.resolve, next.reject)
			const { done, value } = await next.promise
			if (done) return
			yield value
		}
	} finally {
		request.resume()
	}
}
