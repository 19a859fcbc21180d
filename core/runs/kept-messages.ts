/**
 * The messages of earlier turns that a thread keeps. Each run of a long conversation is shown the same messages: to copy them
 * to the thread, and to count them there, would cost more than all else that the run needs.
 */
import type { ChatMessage, SentHistory } from '../protocol.ts'

/** Characters of all messages that one thread keeps, but for those of the latest order. */
const LIMIT = 4 * 1024 * 1024
/** What a message takes besides its text, in characters. */
const OVERHEAD = 200

interface Kept {
	characters: number
	/** Since it was considered for removal last. */
	isUsed: boolean
}

/** Of the messages that were sent to any thread. */
const numbers = new WeakMap<ChatMessage, number>()
let lastNumber = 0

export class KeptMessages {
	/** By number; the next one to be considered for removal first. */
	readonly #kept = new Map<number, Kept>()
	#characters = 0
	/** Removed since the last order. */
	#forget: number[] = []

	/** `post` is called once, and may throw. A message is kept from the second time on, since most are sent once. */
	send(history: readonly ChatMessage[], post: (sent: SentHistory) => void): void {
		const keep: SentHistory['keep'] = []
		const messages = history.map((message) => {
			const number = numbers.get(message)
			if (number === undefined) {
				numbers.set(message, ++lastNumber)
				return message
			}
			const kept = this.#kept.get(number)
			if (kept) kept.isUsed = true
			else keep.push([number, message])
			return number
		})
		post({ messages, keep, forget: this.#forget })
		this.#forget = []
		for (const [number, message] of keep) this.#add(number, charactersOf(message))
		this.#shrink()
	}

	#add(number: number, characters: number): void {
		this.#kept.set(number, { characters, isUsed: false })
		this.#characters += characters
	}

	#shrink(): void {
		for (const [number, { characters, isUsed }] of this.#kept) {
			if (this.#characters <= LIMIT) return
			this.#kept.delete(number)
			this.#characters -= characters
			// It gets a second chance, behind the others.
			if (isUsed) this.#add(number, characters)
			else this.#forget.push(number)
		}
	}
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
