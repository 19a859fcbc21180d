/** Frames of a link: the length of the body in 4 bytes (big-endian), then the body. An empty body is a ping. */
import { deserialize, serialize } from 'node:v8'

const HEAD_BYTES = 4

/** The head and the body of a message. Throws if the message cannot be cloned, and `RangeError` for a body beyond `limit`. */
export function encode(message: unknown, limit: number): [head: Buffer, body: Buffer] {
	const body = serialize(message)
	if (body.length > limit)
		throw new RangeError(`the message has ${body.length} bytes; ${limit} can be sent to another gateway`)
	const head = Buffer.allocUnsafe(HEAD_BYTES)
	head.writeUInt32BE(body.length)
	return [head, body]
}

export const ping = Buffer.alloc(HEAD_BYTES)

/**
 * Returns a function for the bytes as they arrive, in pieces of any size, which calls `receive` with each message. It throws
 * `RangeError` before it reads a body beyond `limit`, and the errors of `deserialize`.
 */
export function frameReader(limit: number, receive: (message: unknown) => void): (bytes: Buffer) => void {
	let pieces: Buffer[] = []
	let buffered = 0
	/** Length of the next body; undefined until its head has arrived. */
	let length: number | undefined

	/** Undefined until so many bytes have arrived. */
	const take = (bytes: number): Buffer | undefined => {
		if (buffered < bytes) return undefined
		const all = pieces.length === 1 ? (pieces[0] as Buffer) : Buffer.concat(pieces, buffered)
		buffered -= bytes
		pieces = buffered > 0 ? [all.subarray(bytes)] : []
		return all.subarray(0, bytes)
	}
	return (bytes) => {
		pieces.push(bytes)
		buffered += bytes.length
		for (;;) {
			if (length === undefined) {
				length = take(HEAD_BYTES)?.readUInt32BE()
				if (length === undefined) return
				if (length > limit) throw new RangeError(`a frame of ${length} bytes was announced; ${limit} are allowed`)
			}
			const body = take(length)
			if (!body) return
			length = undefined
			if (body.length > 0) receive(deserialize(body))
		}
	}
}
