/** Builds an answer from a server's response, in any dialect, and bounds it. */
import { isObject } from '../../core/util/is-object.ts'
import { wireName } from '../wire-name.ts'
import type { ModelAnswer, ToolCallRequest, ToolSpec, Usage } from '../../core/protocol.ts'
import type { ModelOrder } from '../order.ts'
import { answerBound, boundInBody } from './answer-bound.ts'
import { finishReason } from './finish-reason.ts'
import { ModelError } from './provider.ts'
import type { ModelRequest } from './provider.ts'
import { originalArguments } from './tool-parameters.ts'
import { sealState } from './provider-state.ts'
import { estimateUsage } from './usage.ts'
import { stringIn } from './values.ts'

/** Limit of the characters of one answer, including arguments of calls and reasoning. A model that exceeds it is in a loop. */
const ANSWER_LIMIT = 1024 * 1024
/** Limit of the calls of one answer. */
const CALLS_LIMIT = 128

export class AnswerBuilder {
	content = ''
	reasoning = ''
	/** The server's finish reason, unmapped; empty until the server has sent it. */
	finishWord = ''
	usage: Usage | undefined
	/** Data that the provider must get back with this answer; JSON. */
	state: unknown
	/** Nothing in the response has been recognised so far. */
	isUntouched = true
	readonly #tools: readonly ToolSpec[]
	readonly #onText: (text: string) => void
	readonly #calls = new Map<string | number, ToolCallRequest>()
	#characters = 0

	/** `onText` gets each piece of the answer's text at once. */
	constructor(tools: readonly ToolSpec[], onText: (text: string) => void = () => {}) {
		this.#tools = tools
		this.#onText = onText
	}

	addText(text: string): void {
		this.#count(text)
		this.content += text
		if (text !== '') this.#onText(text)
	}

	addReasoning(text: string): void {
		this.#count(text)
		this.reasoning += text
	}

	/** `at` identifies the call within the answer. The first id and name are used; arguments are concatenated. */
	addToCall(at: string | number, piece: { id?: unknown; name?: unknown; arguments?: unknown }): void {
		let call = this.#calls.get(at)
		if (!call) {
			if (this.#calls.size >= CALLS_LIMIT) throw tooLong(`more than ${CALLS_LIMIT} tool calls`)
			this.#calls.set(at, (call = { id: '', name: '', arguments: '' }))
		}
		const { id, name } = piece
		const args = isObject(piece.arguments) ? JSON.stringify(piece.arguments) : textOrNothing(piece.arguments)
		call.id ||= stringIn(id)
		call.name ||= stringIn(name)
		call.arguments += args
		this.#count(stringIn(id) + stringIn(name) + args)
	}

	/** The latest call, and its `at`. */
	get lastCall(): [at: string | number, call: ToolCallRequest] | undefined {
		return [...this.#calls].at(-1)
	}

	get hasCalls(): boolean {
		return this.#calls.size > 0
	}

	/** The calls with the tools' canonical names, in the model's order. */
	get tool_calls(): ToolCallRequest[] {
		return [...this.#calls.values()].map((call) => {
			const tool = this.#tools.find((one) => wireName(one.name) === call.name || one.name === call.name)
			const args = call.arguments.trim() === '' ? '{}' : call.arguments
			return tool
				? { ...call, name: tool.name, arguments: originalArguments(tool.parameters, args) }
				: { ...call, arguments: args }
		})
	}

	/** The calls with the names and ids that the server sent. */
	callsAs<T>(view: (call: { id: string; name: string }, at: string | number) => T): T[] {
		return [...this.#calls].map(([at, { id, name }]) => view({ id, name }, at))
	}

	/** The server has sent a finish reason, and nothing is cut off. */
	get isWhole(): boolean {
		return this.finishWord !== '' && this.finishWord !== 'error' && !this.#isCut
	}

	/** It reached its maximum length in the middle of a tool call. */
	get isTooLong(): boolean {
		return this.#isCut && finishReason(this.finishWord, false) === 'length'
	}

	/** Throws ModelError if it ended before the answer did. */
	check(order: ModelOrder): void {
		if (this.#isCut) {
			const what = `the answer was cut off (${this.finishWord}) in the middle of a tool call`
			throw new ModelError('model_interrupted', this.isTooLong ? `${what}; ${longer(order)}` : what)
		}
		if (!this.isWhole) {
			throw new ModelError('model_interrupted', 'the stream ended before the answer did', { retryable: true })
		}
		for (const { name } of this.#calls.values()) if (name === '') throw malformed('a tool call has no name')
	}

	/** Call after `check`. */
	answer(order: ModelOrder, request: ModelRequest): ModelAnswer {
		const { content, tool_calls, state } = this
		const reasoning = this.reasoning.trim()
		const provider_state = state === undefined ? undefined : sealState(order, state)
		return {
			content,
			tool_calls,
			usage: this.usage ?? this.estimated(request),
			provider: order.provider,
			model: order.model,
			finish_reason: finishReason(this.finishWord, tool_calls.length > 0),
			...(reasoning !== '' && { reasoning }),
			...(provider_state && { provider_state }),
		}
	}

	/** For servers that report no usage. */
	estimated(request: ModelRequest): Usage {
		const calls = this.tool_calls.map((call) => call.name + call.arguments).join('')
		return estimateUsage(request, this.content + this.reasoning.trim() + calls)
	}

	get #isCut(): boolean {
		const reason = finishReason(this.finishWord, false)
		return this.hasCalls && (reason === 'length' || reason === 'content_filter')
	}

	#count(text: string): void {
		this.#characters += text.length
		if (this.#characters > ANSWER_LIMIT) throw tooLong(`more than ${ANSWER_LIMIT} characters`)
	}
}

/** Reads the response to one request into an answer. Methods throw ModelError and StreamError. */
export interface AnswerReader {
	/** The next event of a stream. */
	take(event: unknown): void
	/** The JSON that a server sent instead of a stream. */
	takeWhole(body: unknown): void
	/** Called at the end of the response, whether it succeeded or failed. */
	end?(): void
}

/** The text, or '' for null and undefined. Throws ModelError for other values. */
export function textOrNothing(value: unknown): string {
	if (value === undefined || value === null) return ''
	if (typeof value !== 'string') throw malformed('text of the answer is not a string')
	return value
}

/** Advice about how to allow longer answers. */
function longer(order: ModelOrder): string {
	if (boundInBody(order) !== undefined) return `raise the limit in extra_body of provider ${order.provider}`
	if (answerBound(order) !== undefined) return 'raise config.max_tokens of the agent'
	return `if the window of the model was full, set context_window of provider ${order.provider} to its size; otherwise set config.max_tokens of the agent`
}

export function malformed(what: string): ModelError {
	return new ModelError('model_malformed', what, { retryable: true })
}

function tooLong(what: string): ModelError {
	return new ModelError('model_malformed', `the answer has ${what}`)
}
