/** Keeps a session's latest messages, so that a client can resume a broken stream. A bounded event store for the SDK. */
import type { EventStore } from '@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js'
import type { JSONRPCMessage } from '@modelcontextprotocol/sdk/types.js'
import { randomText } from '../../core/util/ids.ts'

const EVENT_LIMIT = 1_000
const CHARACTER_LIMIT = 256 * 1024

interface Sent {
	id: string
	stream: string
	message: JSONRPCMessage
	size: number
}

export class Replay implements EventStore {
	/** Oldest first. */
	readonly #sent: Sent[] = []
	#characters = 0
	/** The prefix of all ids, which distinguishes them from those of an earlier instance of the session. */
	readonly #prefix = `${randomText(4)}-`
	#last = 0

	isOwn(id: string | null): boolean {
		return id?.startsWith(this.#prefix) ?? false
	}

	/** Deletes the oldest events above the limits. A client that resumes after a deleted event gets an error. */
	async storeEvent(stream: string, message: JSONRPCMessage): Promise<string> {
		const id = `${this.#prefix}${++this.#last}`
		const size = JSON.stringify(message).length
		this.#sent.push({ id, stream, message, size })
		this.#characters += size
		while (this.#characters > CHARACTER_LIMIT || this.#sent.length > EVENT_LIMIT)
			this.#characters -= this.#sent.shift()?.size ?? 0
		return id
	}

	async getStreamIdForEventId(id: string): Promise<string | undefined> {
		return this.#sent.find((one) => one.id === id)?.stream
	}

	/** The stream of this event if its request has been answered, so that the stream has ended. */
	endedStreamOf(id: string): string | undefined {
		const stream = this.#sent.find((one) => one.id === id)?.stream
		const last = this.#sent.findLast((one) => one.stream === stream)?.message
		return last && ('result' in last || 'error' in last) ? stream : undefined
	}

	async replayEventsAfter(
		id: string,
		{ send }: { send: (id: string, message: JSONRPCMessage) => Promise<void> },
	): Promise<string> {
		const at = this.#sent.findIndex((one) => one.id === id)
		const stream = this.#sent[at]?.stream
		if (stream === undefined) throw new Error('the event is no longer available')
		for (const sent of this.#sent.slice(at + 1)) if (sent.stream === stream) await send(sent.id, sent.message)
		return stream
	}
}
