/** Frames of a link: the length of the body in 4 bytes (big-endian), then the body. An empty body is a ping. */
import { deserialize, serialize } from 'node:v8'

const HEAD_BYTES = 4

/** The head and the body of a message; what can be cloned can be sent. Throws for anything else, and `RangeError` for a body beyond `limit`. */
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
 * Returns what takes the bytes as they arrive, in pieces of any size, and calls `receive` with each message. That throws
 * `RangeError` before it reads a body beyond `limit`, and what `deserialize` throws.
 */
export function frameReader(limit: number, receive: (message: unknown) => void): (bytes: Buffer) => void {
	let pieces: Buffer[] = []
	let have = 0
	/** Of the body that comes next; undefined before its head is there. */
	let length: number | undefined

	/** Undefined while there are too few. */
	const take = (bytes: number): Buffer | undefined => {
		if (have < bytes) return undefined
		const all = pieces.length === 1 ? (pieces[0] as Buffer) : Buffer.concat(pieces, have)
		have -= bytes
		pieces = have > 0 ? [all.subarray(bytes)] : []
		return all.subarray(0, bytes)
	}
	return (bytes) => {
		pieces.push(bytes)
		have += bytes.length
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
