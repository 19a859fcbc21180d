import type { IncomingMessage } from 'node:http'
import { partsOf } from '../shared/request-parts.ts'

/** As `partsOf`. The rest of a body that is not read to its end is discarded, since a client that still sends sees no answer. */
export async function* bodyOf(request: IncomingMessage, signal: AbortSignal): AsyncGenerator<Uint8Array> {
	try {
		yield* partsOf(request, signal)
	} finally {
		request.resume()
	}
}
