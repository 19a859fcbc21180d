import type { IncomingMessage } from 'node:http'
import { unlessAborted } from '../../core/util/unless-aborted.ts'

/**
 * The body of a request in parts, as they arrive within the server's time limit for requests. Throws the reason of `signal` when
 * that aborts. A rest of the body is left to the caller.
 */
export async function* partsOf(request: IncomingMessage, signal: AbortSignal): AsyncGenerator<Uint8Array> {
	const parts: AsyncIterator<Uint8Array> = request.iterator({ destroyOnReturn: false })
	try {
		for (;;) {
			// One wait for each part: one for all of them would keep them in memory until the end.
			const { done, value } = await unlessAborted(signal, parts.next())
			if (done) return
			yield value
		}
	} finally {
		// With the iterator's listener, the rest of the body would not flow.
		request.removeAllListeners('readable')
	}
}
