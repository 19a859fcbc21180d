import type { IncomingMessage } from 'node:http'
import { partsOf } from '../shared/request-parts.ts'

/** As `partsOf`. Discards the rest of a body that is not read to its end: a client reads the response only after it has sent all. */
export async function* bodyOf(request: IncomingMessage, signal: AbortSignal): AsyncGenerator<Uint8Array> {
	try {
		yield* partsOf(request, signal)
	} finally {
		request.resume()
	}
}
