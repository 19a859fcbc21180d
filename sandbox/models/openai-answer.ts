/** Reads the chunks of a streamed chat completion, or a whole one, into an answer. */
import { fieldsOf, isObject } from '../../core/util/is-object.ts'
import type { ToolSpec, Usage } from '../../core/protocol.ts'
import { malformed, textOrNothing } from './answer.ts'
import type { AnswerBuilder, AnswerReader } from './answer.ts'
import { throwErrorIn } from './failures.ts'
import { callsInText, TextGate } from './text-calls.ts'
import { ThinkTags, withoutOpenTag } from './think-tags.ts'
import type { Parted } from './think-tags.ts'
import { countedUsage } from './usage.ts'
import { countIn, listIn, stringIn } from './values.ts'

export class ChatReader implements AnswerReader {
	readonly #answer: AnswerBuilder
	readonly #tools: readonly ToolSpec[]
	readonly #tags = new ThinkTags()
	/** Absent if no tool is offered: then no text is a call. */
	readonly #gate: TextGate | undefined
	/** Fields of the message that are sent back with it. */
	readonly #back: Record<string, unknown> = {}
	readonly #details: unknown[] = []
	readonly #extras = new Map<string | number, unknown>()

	constructor(answer: AnswerBuilder, tools: readonly ToolSpec[]) {
		this.#answer = answer
		this.#tools = tools
		if (tools.length > 0) this.#gate = new TextGate()
	}

	takeWhole(completion: unknown): void {
		this.take(completion)
		if (!this.#answer.isUntouched) this.#answer.finishWord ||= 'stop'
	}

	take(chunk: unknown): void {
		if (!isObject(chunk)) throw malformed('a chunk is not an object')
		throwErrorIn(chunk)
		const answer = this.#answer
		const [choice] = listIn(chunk.choices)
		if ('choices' in chunk || 'usage' in chunk) answer.isUntouched = false
		answer.usage =
			usageIn(chunk.usage) ?? usageIn(fieldsOf(chunk.x_groq).usage) ?? usageIn(fieldsOf(choice).usage) ?? answer.usage
		if (choice === undefined || choice === null) return
		if (!isObject(choice)) throw malformed('a choice is not an object')
		const delta = choice.delta ?? choice.message ?? {}
		if (!isObject(delta)) throw malformed('a delta is not an object')
		this.#takeReasoning(delta)
		this.#takeText(delta.content ?? choice.text)
		answer.addText(textOrNothing(delta.refusal))
		for (const piece of listIn(delta.tool_calls)) this.#takeCall(piece)
		if (isObject(delta.function_call)) answer.addToCall(0, delta.function_call)
		const reason = choice.finish_reason ?? choice.stop_reason
		if (typeof reason === 'string' && reason !== '') answer.finishWord = reason.slice(0, 64)
	}

	end(): void {
		const answer = this.#answer
		this.#add(this.#tags.end())
		const held = this.#gate?.held ?? ''
		const found = held === '' || answer.hasCalls ? null : callsInText(held, this.#tools, answer.content)
		answer.addText(found ? found.content : held)
		for (const [at, call] of (found?.calls ?? []).entries()) answer.addToCall(`text ${at}`, call)
		const parted = answer.reasoning === '' ? withoutOpenTag(answer.content) : undefined
		if (parted) {
			answer.content = parted.text
			answer.reasoning = parted.reasoning
		}
		this.#keepState()
	}

	#takeText(content: unknown): void {
		// Mistral's reasoning models send a list of parts.
		if (Array.isArray(content)) {
			for (const part of content.map(fieldsOf)) {
				if (part.type === 'thinking') this.#answer.addReasoning(textOf(part.thinking))
				else this.#takeText(textOf(part.text))
			}
			return
		}
		this.#add(this.#tags.take(textOrNothing(content)))
	}

	#add({ text, reasoning }: Parted): void {
		this.#answer.addReasoning(reasoning)
		this.#answer.addText(this.#gate ? this.#gate.take(text) : text)
	}

	#takeReasoning(delta: Record<string, unknown>): void {
		const { reasoning_content, reasoning_details, extra_content } = delta
		if (typeof reasoning_content === 'string') {
			this.#back.reasoning_content = stringIn(this.#back.reasoning_content) + reasoning_content
		}
		if (extra_content !== undefined && extra_content !== null) this.#back.extra_content = extra_content
		const text = stringIn(reasoning_content) || stringIn(delta.reasoning) || stringIn(delta.thinking)
		if (text !== '') this.#answer.addReasoning(text)
		if (reasoning_details === undefined || reasoning_details === null) return
		const details = listIn(reasoning_details).filter(isObject)
		if (details.length > 0) {
			mergeInto(this.#details, details)
			this.#back.reasoning_details = this.#details
		}
		if (text === '')
			this.#answer.addReasoning(details.map((detail) => stringIn(detail.text ?? detail.summary)).join(''))
	}

	#takeCall(piece: unknown): void {
		if (!isObject(piece)) throw malformed('a tool call is not an object')
		const { id } = piece
		const fn = piece.function ?? {}
		if (!isObject(fn)) throw malformed('the function of a tool call is not an object')
		const at = this.#placeOf(piece.index, id)
		this.#answer.addToCall(at, { id, name: fn.name, arguments: fn.arguments })
		if (piece.extra_content !== undefined) this.#extras.set(at, piece.extra_content)
	}

	/** Some servers send complete calls without an index, or with the same one: then a new id starts a new call. */
	#placeOf(index: unknown, id: unknown): string | number {
		const last = this.#answer.lastCall
		const isNewId = typeof id === 'string' && id !== '' && last !== undefined && last[1].id !== '' && last[1].id !== id
		if (typeof index === 'number') return isNewId && last[0] === index ? `${index} ${id}` : index
		if (last === undefined) return 0
		return isNewId ? `new ${id}` : last[0]
	}

	#keepState(): void {
		const calls =
			this.#extras.size > 0
				? this.#answer.callsAs((call, at) => ({ ...call, extra_content: this.#extras.get(at) }))
				: undefined
		const state = { ...this.#back, ...(calls && { calls }) }
		if (Object.keys(state).length > 0) this.#answer.state = state
	}
}

/** OpenRouter streams each detail in pieces, whose texts are joined. In place, since copies would take quadratic time. */
function mergeInto(result: unknown[], pieces: Record<string, unknown>[]): void {
	for (const piece of pieces) {
		const last = fieldsOf(result.at(-1))
		const isSame = last.type === piece.type && last.index === piece.index && (piece.id ?? last.id) === last.id
		if (result.length === 0 || !isSame) {
			result.push(piece)
			continue
		}
		const texts = ['text', 'summary', 'data'].filter((key) => typeof piece[key] === 'string')
		const whole = Object.fromEntries(texts.map((key) => [key, stringIn(last[key]) + stringIn(piece[key])]))
		const said = Object.fromEntries(Object.entries(piece).filter(([, value]) => value !== null && value !== undefined))
		result[result.length - 1] = { ...last, ...said, ...whole }
	}
}

/** Text, or a list of parts with text. */
function textOf(value: unknown): string {
	if (!Array.isArray(value)) return textOrNothing(value)
	return value.map((part) => stringIn(fieldsOf(part).text)).join('')
}

function usageIn(usage: unknown): Usage | undefined {
	if (!isObject(usage)) return undefined
	return countedUsage({
		input: usage.prompt_tokens,
		output: usage.completion_tokens,
		cached: countIn(fieldsOf(usage.prompt_tokens_details).cached_tokens) ?? usage.prompt_cache_hit_tokens,
		reasoning: fieldsOf(usage.completion_tokens_details).reasoning_tokens,
	})
}
