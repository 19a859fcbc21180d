import type { IncomingMessage } from 'node:http'
import { unlessAborted } from '../../core/util/unless-aborted.ts'

/**
 * The body of a request in parts, as they arrive within the server's time limit for requests. Throws the reason of `signal` when
 * that aborts. If the caller stops early, the rest of the body remains to be read.
 */
export async function* partsOf(request: IncomingMessage, signal: AbortSignal): AsyncGenerator<Uint8Array> {
	const parts: AsyncIterator<Uint8Array> = request.iterator({ destroyOnReturn: false })
	try {
		for (;;) {
			// A separate abort listener for each part: a common one would keep all parts in memory until the end.
			const { done, value } = await unlessAborted(signal, parts.next())
			if (done) return
			yield value
		}
	} finally {
		// The iterator's listener would keep the rest of the body from flowing.
		request.removeAllListeners('readable')
	}
}
