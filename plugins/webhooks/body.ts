import type { IncomingMessage } from 'node:http'
import Boom from '@hapi/boom'
import { Fault } from '../../core/errors.ts'

export interface BodyLimits {
	bytes: number
	ms: number
	/** Aborts when the request must give way to others. */
	signal?: AbortSignal
}

/**
 * The bytes of a request's body as received. Reads no further than the limit, whatever length the request declares;
 * then the connection cannot be reused, and hapi closes it. Throws `payload_too_large`; 408 if it takes too long;
 * the reason of `signal`.
 */
export function readBody(request: IncomingMessage, limits: BodyLimits): Promise<Buffer> {
	if (Number(request.headers['content-length'] ?? 0) > limits.bytes) return Promise.reject(bodyTooLarge(limits.bytes))
	// Most bodies arrive together with the headers, so there is nothing to wait for.
	if (request.complete && !request.destroyed && !limits.signal) return arrived(request, limits.bytes)
	const { promise, resolve, reject } = Promise.withResolvers<Buffer>()

	const parts: Buffer[] = []
	let size = 0
	const settle = (): void => {
		clearTimeout(timer)
		limits.signal?.removeEventListener('abort', giveWay)
		request.pause()
		request.off('data', take).off('end', end).off('close', gone)
	}
	const take = (part: Buffer): void => {
		parts.push(part)
		size += part.length
		if (size > limits.bytes) fail(bodyTooLarge(limits.bytes))
	}
	const end = (): void => {
		settle()
		resolve(parts.length === 1 ? (parts[0] as Buffer) : Buffer.concat(parts))
	}
	const fail = (error: Error): void => {
		settle()
		reject(error)
	}
	const gone = (): void => fail(new Fault('invalid_request', 'the connection ended before the body did'))
	const giveWay = (): void => fail(limits.signal?.reason)
	const timer = setTimeout(
		() => fail(Boom.clientTimeout(`the body did not arrive within ${limits.ms / 1000} seconds`)),
		limits.ms,
	)
	limits.signal?.addEventListener('abort', giveWay)
	if (limits.signal?.aborted) giveWay()
	else if (request.destroyed) gone()
	else request.on('data', take).on('end', end).on('close', gone)
	return promise
}

/** The body of a request that has arrived completely. */
async function arrived(request: IncomingMessage, limit: number): Promise<Buffer> {
	if (request.readableLength > limit) throw bodyTooLarge(limit)
	return (request.read() as Buffer | null) ?? Buffer.alloc(0)
}

export function bodyTooLarge(bytes: number): Fault {
	return new Fault('payload_too_large', `the body has more than ${bytes} bytes, the limit of a delivery`)
}
