/** One answer as Server-Sent Events: told while it is made, kept alive while there is nothing to tell, ended with the last word. */
import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { chunk, Connection } from './sse.ts'
import type { ConnectionOptions } from './sse.ts'

export interface SseReplyOptions extends ConnectionOptions {
	/** After so long without a word the client gets a comment, for the proxies on its way. */
	heartbeatMs: number
}

/** Bytes that may wait for a client. The last word comes on top: it is small, or what the client asked for. */
const BACKLOG_LIMIT = 1024 * 1024

export class SseReply {
	readonly #response: ServerResponse
	readonly #options: SseReplyOptions
	#connection: Connection | undefined
	#early = ''
	#quietSince = performance.now()

	/** `response` is not begun yet, and stays so until `open`. */
	constructor(response: ServerResponse, options: SseReplyOptions) {
		this.#response = response
		this.#options = options
	}

	/** `socket`: as `turnOf` answers with it. Sends `first`, and then what was written before. False where the client has left. */
	open(socket: Socket, first: string): boolean {
		if (this.#response.destroyed) return false
		this.#connection = new Connection(this.#response, socket, first + this.#early, this.#options)
		this.#early = ''
		return true
	}

	/** Whole events. A client that lets more than 1 MiB wait is cut off. */
	write(text: string): void {
		this.#quietSince = performance.now()
		if (this.#response.destroyed) return
		if (!this.#connection) this.#early += text
		else if (this.#connection.backlog > BACKLOG_LIMIT) this.#connection.cut()
		else this.#connection.write(chunk(text))
	}

	/** Ends it behind `last`, once the client has taken what waits. */
	end(last: string): void {
		const connection = this.#connection
		if (this.#response.destroyed || !connection) return
		connection.write(chunk(last))
		connection.whenReady(() => connection.end())
	}

	/** To be called about twice a second; `now` by the clock of `performance.now`. */
	beat(now: number): void {
		const connection = this.#connection
		if (!connection || connection.full || now - this.#quietSince < this.#options.heartbeatMs) return
		this.write(': still here\n\n')
	}

	cut(): void {
		this.#connection?.cut()
	}
}
