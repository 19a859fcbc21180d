/** Reads the events of a streamed message, or a whole one, into an answer. */
import { fieldsOf, isObject } from '../../core/util/is-object.ts'
import { jsonIn } from '../../core/util/json-in.ts'
import type { Usage } from '../../core/protocol.ts'
import { malformed, textOrNothing } from './answer.ts'
import type { AnswerBuilder, AnswerReader } from './answer.ts'
import { throwErrorIn } from './failures.ts'
import { countedUsage } from './usage.ts'
import { countIn, stringIn } from './values.ts'

type Block = Record<string, unknown>

/** Limit of the blocks of one message; higher indexes are an error of the server. */
const BLOCKS_LIMIT = 1_024

export class MessageReader implements AnswerReader {
	readonly #answer: AnswerBuilder
	readonly #blocks: Block[] = []
	/** The arguments received so far, by block. */
	readonly #json = new Map<Block, string>()
	#usage: Record<string, unknown> = {}

	constructor(answer: AnswerBuilder) {
		this.#answer = answer
	}

	take(event: unknown): void {
		if (!isObject(event)) throw malformed('an event is not an object')
		switch (event.type) {
			case 'message_start':
				this.#answer.isUntouched = false
				return this.#takeUsage(fieldsOf(event.message).usage)
			case 'content_block_start':
				return this.#begin(event.index, event.content_block)
			case 'content_block_delta':
				return this.#add(this.#blockAt(event.index), event.delta)
			case 'message_delta': {
				this.#takeUsage(event.usage)
				this.#answer.finishWord = stringIn(fieldsOf(event.delta).stop_reason) || this.#answer.finishWord
				return
			}
		}
		throwErrorIn(event)
	}

	takeWhole(message: unknown): void {
		if (!isObject(message)) throw malformed('the message is not an object')
		throwErrorIn(message)
		if (!Array.isArray(message.content)) return
		this.#answer.isUntouched = false
		for (const [index, block] of message.content.entries()) this.#begin(index, block)
		this.#takeUsage(message.usage)
		this.#answer.finishWord = stringIn(message.stop_reason) || 'end_turn'
	}

	end(): void {
		const answer = this.#answer
		for (const [at, block] of this.#blocks.entries()) {
			if (block?.type !== 'tool_use') continue
			const json = this.#json.get(block)
			if (json !== undefined) block.input = jsonIn(json || '{}') ?? {}
			answer.addToCall(at, { id: block.id, name: block.name, arguments: json ?? JSON.stringify(block.input ?? {}) })
		}
		// Text and calls can be sent back from the answer itself, without state.
		const blocks = this.#blocks.filter((block) => block !== undefined)
		if (blocks.some(({ type }) => type !== 'text' && type !== 'tool_use')) answer.state = { content: blocks }
		answer.usage = usageIn(this.#usage)
	}

	#begin(index: unknown, block: unknown): void {
		if (!isObject(block) || typeof index !== 'number' || !(index >= 0 && index < BLOCKS_LIMIT)) {
			throw malformed('a block of the message is not an object')
		}
		this.#answer.isUntouched = false
		this.#blocks[index] = { ...block }
		if (block.type === 'text') this.#answer.addText(textOrNothing(block.text))
		if (block.type === 'thinking') this.#answer.addReasoning(textOrNothing(block.thinking))
	}

	#add(block: Block, delta: unknown): void {
		const { type, ...piece } = fieldsOf(delta)
		switch (type) {
			case 'text_delta':
				block.text = stringIn(block.text) + textOrNothing(piece.text)
				return this.#answer.addText(stringIn(piece.text))
			case 'thinking_delta':
				block.thinking = stringIn(block.thinking) + textOrNothing(piece.thinking)
				return this.#answer.addReasoning(stringIn(piece.thinking))
			case 'signature_delta':
				block.signature = stringIn(block.signature) + textOrNothing(piece.signature)
				return
			case 'input_json_delta':
				this.#json.set(block, (this.#json.get(block) ?? '') + textOrNothing(piece.partial_json))
		}
	}

	#blockAt(index: unknown): Block {
		const block = typeof index === 'number' ? this.#blocks[index] : undefined
		if (!block) throw malformed('a piece belongs to no block of the message')
		return block
	}

	#takeUsage(usage: unknown): void {
		const fields = Object.entries(fieldsOf(usage)).filter(([, value]) => value !== null && value !== undefined)
		this.#usage = { ...this.#usage, ...Object.fromEntries(fields) }
	}
}

/** `input_tokens` of the API does not include tokens that were written to the cache or read from it. */
function usageIn(usage: Record<string, unknown>): Usage | undefined {
	const counted = countedUsage({
		input: usage.input_tokens,
		output: usage.output_tokens,
		cached: usage.cache_read_input_tokens,
		reasoning: fieldsOf(usage.output_tokens_details).thinking_tokens,
	})
	if (counted) counted.input_tokens += (counted.cached_tokens ?? 0) + (countIn(usage.cache_creation_input_tokens) ?? 0)
	return counted
}
