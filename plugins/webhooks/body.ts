import type { IncomingMessage } from 'node:http'
import Boom from '@hapi/boom'
import { Fault, isFault } from '../../core/errors.ts'
import { allBytes } from '../../core/util/all-bytes.ts'
import { partsOf } from '../shared/request-parts.ts'

export interface BodyLimits {
	bytes: number
	ms: number
	/** Aborts when the request must yield to others. */
	signal?: AbortSignal
}

/**
 * Reads the body of a request, as received. Stops at the limit, whatever length the request declares; the connection cannot be
 * reused then, and hapi closes it. Throws `payload_too_large`, 408 if the body takes too long, or the reason of `signal`.
 */
export async function readBody(request: IncomingMessage, { bytes, ms, signal }: BodyLimits): Promise<Buffer> {
	const tooLarge = (): Fault => bodyTooLarge(bytes)
	if (Number(request.headers['content-length'] ?? 0) > bytes) throw tooLarge()
	// Most bodies arrive together with the headers, so there is nothing to wait for.
	if (request.complete && !request.destroyed && !signal) return receivedBody(request, bytes)
	const late = new AbortController()
	const end = AbortSignal.any([late.signal, ...(signal ? [signal] : [])])
	const timer = setTimeout(
		() => late.abort(Boom.clientTimeout(`the body did not arrive within ${ms / 1000} seconds`)),
		ms,
	)
	try {
		return await allBytes(partsOf(request, end), bytes, tooLarge)
	} catch (error) {
		if (end.aborted || isFault(error)) throw error
		throw new Fault('invalid_request', 'the connection ended before the body did', { cause: error })
	} finally {
		clearTimeout(timer)
		request.pause()
	}
}

/** The body of a request that was received completely. */
function receivedBody(request: IncomingMessage, limit: number): Buffer {
	if (request.readableLength > limit) throw bodyTooLarge(limit)
	return (request.read() as Buffer | null) ?? Buffer.alloc(0)
}

export function bodyTooLarge(bytes: number): Fault {
	return new Fault('payload_too_large', `the body has more than ${bytes} bytes, the limit of a delivery`)
}
