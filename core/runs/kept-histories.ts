/**
 * The histories that a thread keeps. A run of a long conversation gets the history of the previous run and one more turn. To copy
 * the whole history to the thread, and to count it there, would cost more than the rest of the run.
 */
import type { ChatMessage, SentHistory } from '../protocol.ts'
import { AgedMap } from '../util/aged-map.ts'

/** Limit of the characters of all histories that one thread keeps, except the latest one. */
const LIMIT = 4 * 1024 * 1024
/** The memory of a message besides its text, in characters. */
const OVERHEAD = 200

/** The first messages of histories that were sent to any thread. */
const sentBefore = new WeakSet<ChatMessage>()

export class KeptHistories {
	/** By their first message, which stays the same until the conversation is cut. */
	readonly #kept = new AgedMap<ChatMessage, { id: number; messages: readonly ChatMessage[]; characters: number }>()
	#characters = 0
	#lastId = 0
	/** Removed since the last order. */
	#forget: number[] = []

	/** `post` is called once, and may throw. A history is kept when it is sent for the second time, since many are sent only once. */
	send(history: readonly ChatMessage[], post: (sent: SentHistory) => void): void {
		const [first] = history
		const keeps = first !== undefined && sentBefore.has(first)
		const known = keeps ? this.#kept.get(first) : undefined
		const id = known?.id ?? (keeps ? ++this.#lastId : undefined)
		const from = known ? commonPrefix(known.messages, history) : 0
		post({ ...(id !== undefined && { id }), from, added: history.slice(from), forget: this.#forget })
		this.#forget = []
		if (!first) return
		sentBefore.add(first)
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

/** The number of messages with which both begin. */
function commonPrefix(a: readonly ChatMessage[], b: readonly ChatMessage[]): number {
	let at = 0
	while (at < a.length && a[at] === b[at]) at++
	return at
}

/** The approximate memory of messages, in characters. */
export function charactersIn(messages: readonly ChatMessage[]): number {
	return messages.reduce((sum, message) => sum + charactersOf(message), 0)
}

function charactersOf(message: ChatMessage): number {
	const { content, role } = message
	let characters = content.length + OVERHEAD
	if (role !== 'assistant') return characters
	characters += (message.reasoning?.length ?? 0) + (message.provider_state?.data.length ?? 0)
	for (const call of message.tool_calls ?? []) characters += call.name.length + call.arguments.length
	return characters
}
