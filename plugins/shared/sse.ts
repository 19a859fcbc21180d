/** The connection to one client of Server-Sent Events. */
import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

const headers = {
	'content-type': 'text/event-stream',
	'cache-control': 'no-cache, no-transform',
	// Without it, nginx would buffer the stream.
	'x-accel-buffering': 'no',
}

export interface ConnectionOptions {
	/** The connection is cut if pending data makes no progress for this time. */
	stallMs: number
	/** Called when the connection has ended, on either side. */
	closed: () => void
}

/**
 * Writes blocks directly to the socket of the response. They are framed once for all clients: Node's framing of each write would
 * make it half as expensive again.
 */
export class Connection {
	readonly #response: ServerResponse
	readonly #socket: Socket
	readonly #stallMs: number
	#full = false
	#drained: (() => void) | undefined

	/** `response` must own its socket; see `turnOf`. `first`: text of events, or a comment. */
	constructor(response: ServerResponse, socket: Socket, first: string, { stallMs, closed }: ConnectionOptions) {
		this.#response = response
		this.#socket = socket
		this.#stallMs = stallMs
		const onDrain = (): void => this.#onDrain()
		const onTimeout = (): void => this.cut()
		socket.on('drain', onDrain)
		socket.once('timeout', onTimeout)
		response.once('close', () => {
			// The socket may serve further requests.
			socket.off('drain', onDrain)
			socket.off('timeout', onTimeout)
			closed()
		})
		response.writeHead(200, headers)
		response.write(first)
	}

	/** Writes a block that `chunk` has framed. */
	write(block: Buffer): void {
		if (this.#socket.write(this.#response.chunkedEncoding ? block : unchunked(block)) || this.#full) return
		this.#full = true
		// Set once: further writes do not restart the timeout, but progress of the socket does.
		this.#socket.setTimeout(this.#stallMs)
	}

	/** The client is slower than the gateway: write no more until `whenReady` calls back. */
	get full(): boolean {
		return this.#full
	}

	/** Bytes buffered in this process. */
	get backlog(): number {
		return this.#socket.writableLength
	}

	/** Calls `call` once the connection is not full, which may be within this call. */
	whenReady(call: () => void): void {
		if (this.#full) this.#drained = call
		else call()
	}

	/** Ends the response after the buffered data. If the connection is full, it is cut instead. */
	end(last?: string): void {
		if (this.#full) return this.cut()
		// One packet for `last` and the end, which uncorks the socket.
		this.#socket.cork()
		if (last !== undefined) this.write(chunk(last))
		this.#response.end()
	}

	cut(): void {
		this.#response.destroy()
	}

	#onDrain(): void {
		this.#full = false
		this.#socket.setTimeout(0)
		const call = this.#drained
		this.#drained = undefined
		call?.()
	}
}

/** The socket of a response, once the responses to earlier pipelined requests are sent. Null if the response closes before. */
export async function turnOf(response: ServerResponse): Promise<Socket | null> {
	if (!response.socket && !response.destroyed) await Promise.race([once(response, 'socket'), once(response, 'close')])
	return response.destroyed ? null : response.socket
}

/**
 * Frames a text as one chunk of the HTTP/1.1 chunked coding (RFC 9112, section 7.1), for any number of sockets. Empty for an
 * empty text, since an empty chunk would end the body.
 */
export function chunk(text: string): Buffer {
	if (text === '') return Buffer.alloc(0)
	return Buffer.from(`${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`)
}

/** The content of a chunk, for HTTP/1.0, which has no chunked coding. */
function unchunked(bytes: Buffer): Buffer {
	return bytes.subarray(bytes.indexOf('\n') + 1, -2)
}
