/** The connection to a client of Server-Sent Events. */
import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

const headers = {
	'content-type': 'text/event-stream',
	'cache-control': 'no-cache, no-transform',
	// nginx would collect the stream otherwise.
	'x-accel-buffering': 'no',
}

export interface ConnectionOptions {
	/** How long pending data may make no progress. */
	stallMs: number
	/** It has ended, on either side. */
	closed: () => void
}

/**
 * The connection to one client. Blocks are written to the socket below the response: they are framed once for all clients, and
 * node's own framing of each write would cost half as much again.
 */
export class Connection {
	readonly #response: ServerResponse
	readonly #socket: Socket
	readonly #stallMs: number
	#full = false
	#drained: (() => void) | undefined

	/** `response` must be the one whose turn it is on its socket; see `turnOf`. `first`: text of events, or a comment. */
	constructor(response: ServerResponse, socket: Socket, first: string, { stallMs, closed }: ConnectionOptions) {
		this.#response = response
		this.#socket = socket
		this.#stallMs = stallMs
		const onDrain = (): void => this.#onDrain()
		const onTimeout = (): void => this.cut()
		socket.on('drain', onDrain)
		socket.once('timeout', onTimeout)
		response.once('close', () => {
			// The socket may serve further requests, with Node's own time limit.
			socket.off('drain', onDrain)
			socket.off('timeout', onTimeout)
			closed()
		})
		response.writeHead(200, headers)
		response.write(first)
	}

	/** Takes a block as `chunk` makes it, always whole. */
	write(block: Buffer): void {
		if (this.#socket.write(this.#response.chunkedEncoding ? block : unchunked(block)) || this.#full) return
		this.#full = true
		// Watches for progress, not for writes: further pending blocks do not restart it.
		this.#socket.setTimeout(this.#stallMs)
	}

	/** The client is slower than we are: better write no more until `whenReady` calls. */
	get full(): boolean {
		return this.#full
	}

	/** Bytes that wait in this process. */
	get backlog(): number {
		return this.#socket.writableLength
	}

	/** Calls as soon as it is no longer full, which may be within this call. */
	whenReady(call: () => void): void {
		if (this.#full) this.#drained = call
		else call()
	}

	/** The proper end, after what waits; a client that does not take it is not waited for. */
	end(last?: string): void {
		if (this.#full) return this.cut()
		// Together with the end, which uncorks the socket.
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

/** Where requests are pipelined, the socket belongs to an earlier answer until that has gone. Null if it never comes. */
export async function turnOf(response: ServerResponse): Promise<Socket | null> {
	if (!response.socket && !response.destroyed) await Promise.race([once(response, 'socket'), once(response, 'close')])
	return response.destroyed ? null : response.socket
}

/**
 * Bytes ready for any number of sockets: text as one chunk of the HTTP/1.1 chunked coding (RFC 9112, section 7.1). None for an
 * empty text: a chunk without content would end the body.
 */
export function chunk(text: string): Buffer {
	if (text === '') return Buffer.alloc(0)
	return Buffer.from(`${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`)
}

/** What is inside a chunk, for HTTP/1.0, which has no chunks. */
function unchunked(bytes: Buffer): Buffer {
	return bytes.subarray(bytes.indexOf('\n') + 1, -2)
}
