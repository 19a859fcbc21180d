/**
 * The earlier turns that a thread keeps. A run of a long conversation gets what the run before it got, and one turn more:
 * copying all of it to the thread, and counting it there, would cost more than the rest of the run.
 */
import type { ChatMessage, SentHistory } from '../protocol.ts'
import { AgedMap } from '../util/aged-map.ts'

/** Characters of all histories that one thread keeps, but for that of the latest order. */
const LIMIT = 4 * 1024 * 1024
/** What a message takes besides its text, in characters. */
const OVERHEAD = 200

interface Kept {
	id: number
	messages: readonly ChatMessage[]
	characters: number
}

/** The first messages of histories that were sent to any thread. */
const begun = new WeakSet<ChatMessage>()

export class KeptHistories {
	/** By their first message, which stays the same until the conversation is cut. */
	readonly #kept = new AgedMap<ChatMessage, Kept>()
	#characters = 0
	#lastId = 0
	/** Removed since the last order. */
	#forget: number[] = []

	/** `post` is called once, and may throw. A history is kept from the second time on, since many are sent once. */
	send(history: readonly ChatMessage[], post: (sent: SentHistory) => void): void {
		const [first] = history
		const keeps = first !== undefined && begun.has(first)
		const known = keeps ? this.#kept.get(first) : undefined
		const id = known?.id ?? (keeps ? ++this.#lastId : undefined)
		const from = known ? sameIn(known.messages, history) : 0
		post({ ...(id !== undefined && { id }), from, added: history.slice(from), forget: this.#forget })
		this.#forget = []
		if (!first) return
		begun.add(first)
		if (id === undefined) return
		const dropped = known ? charactersIn(known.messages.slice(from)) : 0
		const characters = (known?.characters ?? 0) - dropped + charactersIn(history.slice(from))
		this.#kept.set(first, { id, messages: history, characters })
		this.#characters += characters - (known?.characters ?? 0)
		this.#shrink()
	}

	#shrink(): void {
		while (this.#characters > LIMIT && this.#kept.size > 1) {
			const [, oldest] = this.#kept.takeOldest()!
			this.#characters -= oldest.characters
			this.#forget.push(oldest.id)
		}
	}
}

/** How many messages both begin with. */
function sameIn(one: readonly ChatMessage[], other: readonly ChatMessage[]): number {
	let at = 0
	while (at < one.length && one[at] === other[at]) at++
	return at
}

function charactersIn(messages: readonly ChatMessage[]): number {
	return messages.reduce((sum, message) => sum + charactersOf(message), 0)
}

/** About what a message takes in memory, in characters. */
export function charactersOf(message: ChatMessage): number {
	const { content, role } = message
	let characters = content.length + OVERHEAD
	if (role !== 'assistant') return characters
	characters += (message.reasoning?.length ?? 0) + (message.provider_state?.data.length ?? 0)
	for (const call of message.tool_calls ?? []) characters += call.name.length + call.arguments.length
	return characters
}
