import type { IncomingMessage } from 'node:http'

/**
 * The body of a request in parts, as they arrive within the server's time limit for requests. Throws the reason of `signal` when
 * that aborts. The rest of a body that is not read to its end is discarded, since a client that still sends sees no answer.
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
