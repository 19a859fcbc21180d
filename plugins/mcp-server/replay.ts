/** A session's latest messages, so that a client whose stream broke can resume it: the SDK's event store, bounded. */
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
	/** Of all ids: none of an earlier instance of the session is taken for one of this. */
	readonly #prefix = `${randomText(4)}-`
	#last = 0

	isOwn(id: string | null): boolean {
		return id?.startsWith(this.#prefix) ?? false
	}

	/** A client that returns for an event deleted from here gets the error that it cannot resume. */
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

	/** The stream of this event if it has ended, since its request has been answered. */
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
		if (stream === undefined) throw new Error('the event is not kept any more')
		for (const one of this.#sent.slice(at + 1)) if (one.stream === stream) await send(one.id, one.message)
		return stream
	}
}
