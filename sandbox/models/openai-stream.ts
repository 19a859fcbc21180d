/** Puts a streamed answer together, trusting nothing that the server sends. */
import { wireName } from '../../core/protocol.ts'
import type { ToolCallRequest, ToolSpec, Usage } from '../../core/protocol.ts'
import { ModelError } from './provider.ts'

/** Characters of one answer, its calls' arguments included. A model that continues for longer is stuck. */
const ANSWER_LIMIT = 1024 * 1024
/** Calls of one answer. */
const CALLS_LIMIT = 128

export class AnswerBuilder {
	content = ''
	/** Empty until the server has said how the answer ends. */
	finish_reason = ''
	usage: Usage | undefined
	readonly #tools: readonly ToolSpec[]
	readonly #calls = new Map<number, ToolCallRequest>()
	#chunks = 0
	#characters = 0

	constructor(tools: readonly ToolSpec[]) {
		this.#tools = tools
	}

	/** Adds one chunk and returns the text in it. Throws ModelError. */
	take(chunk: unknown): string {
		this.#chunks++
		if (!isObject(chunk)) throw malformed('a chunk is not an object')
		this.usage = usageIn(chunk.usage) ?? this.usage
		const choice: unknown = Array.isArray(chunk.choices) ? chunk.choices[0] : undefined
		if (choice === undefined || choice === null) return ''
		if (!isObject(choice)) throw malformed('a choice is not an object')
		const delta = choice.delta ?? {}
		if (!isObject(delta)) throw malformed('a delta is not an object')
		const text = textIn(delta.content) + textIn(delta.refusal)
		this.content += text
		this.#count(text)
		if (Array.isArray(delta.tool_calls)) for (const piece of delta.tool_calls) this.#addToCall(piece)
		if (typeof choice.finish_reason === 'string') this.finish_reason = choice.finish_reason.slice(0, 64)
		return text
	}

	/** The calls by the tools' canonical names, in the model's order. */
	get tool_calls(): ToolCallRequest[] {
		return [...this.#calls.values()].map((call) => {
			const tool = this.#tools.find((one) => wireName(one.name) === call.name)
			return tool ? { ...call, name: tool.name } : call
		})
	}

	/** The server said that this is the end, and nothing is cut off. */
	get isWhole(): boolean {
		return this.finish_reason !== '' && this.finish_reason !== 'error' && !this.#isCut
	}

	/** Throws ModelError if the stream ended before the answer did. */
	finish(contentType: string | null): void {
		if (this.#chunks === 0) {
			const what = contentType?.includes('event-stream') === true ? 'an empty stream' : `${contentType ?? 'nothing'}`
			throw malformed(
				`the server answered with ${what} instead of a stream of events; is base_url right? Most end in /v1`,
			)
		}
		if (this.#isCut) {
			throw new ModelError(
				'model_interrupted',
				`the answer was cut off (${this.finish_reason}) in the middle of a tool call; raise config.max_tokens of the agent`,
				{ retryable: false },
			)
		}
		if (!this.isWhole) {
			throw new ModelError('model_interrupted', 'the stream ended before the answer did', { retryable: true })
		}
		for (const { name } of this.#calls.values()) if (name === '') throw malformed('a tool call has no name')
	}

	get #isCut(): boolean {
		return this.#calls.size > 0 && (this.finish_reason === 'length' || this.finish_reason === 'content_filter')
	}

	#addToCall(piece: unknown): void {
		if (!isObject(piece)) throw malformed('a tool call is not an object')
		const { id } = piece
		const fn = piece.function ?? {}
		if (!isObject(fn)) throw malformed('the function of a tool call is not an object')
		const call = this.#callAt(this.#indexOf(piece.index, id))
		if (call.id === '' && typeof id === 'string') {
			call.id = id
			this.#count(id)
		}
		if (call.name === '' && typeof fn.name === 'string') {
			call.name = fn.name
			this.#count(fn.name)
		}
		const text = isObject(fn.arguments) ? JSON.stringify(fn.arguments) : textIn(fn.arguments)
		call.arguments += text
		this.#count(text)
	}

	#callAt(index: number): ToolCallRequest {
		let call = this.#calls.get(index)
		if (!call) {
			if (this.#calls.size >= CALLS_LIMIT) throw tooLong(`more than ${CALLS_LIMIT} tool calls`)
			this.#calls.set(index, (call = { id: '', name: '', arguments: '' }))
		}
		return call
	}

	/** Some servers send each call whole and leave the index out: then a new id is a new call. */
	#indexOf(index: unknown, id: unknown): number {
		if (typeof index === 'number') return index
		const last = this.#calls.size - 1
		const isNew = last < 0 || (typeof id === 'string' && id !== '' && this.#calls.get(last)?.id !== id)
		return isNew ? last + 1 : last
	}

	#count(text: string): void {
		this.#characters += text.length
		if (this.#characters > ANSWER_LIMIT) throw tooLong(`more than ${ANSWER_LIMIT} characters`)
	}
}

function usageIn(usage: unknown): Usage | undefined {
	if (!isObject(usage)) return undefined
	const { prompt_tokens, completion_tokens } = usage
	if (!isCount(prompt_tokens) || !isCount(completion_tokens)) return undefined
	return { input_tokens: prompt_tokens, output_tokens: completion_tokens }
}

function textIn(value: unknown): string {
	if (value === undefined || value === null) return ''
	if (typeof value !== 'string') throw malformed('text of the answer is not a string')
	return value
}

function malformed(what: string): ModelError {
	return new ModelError('model_malformed', what, { retryable: true })
}

function tooLong(what: string): ModelError {
	return new ModelError('model_malformed', `the answer has ${what}`, { retryable: false })
}

function isObject(value: unknown): value is Record<string, unknown> {
	return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function isCount(value: unknown): value is number {
	return typeof value === 'number' && Number.isFinite(value) && value >= 0
}
