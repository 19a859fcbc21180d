/** Reads the chunks of streamed contents, or whole ones, into an answer. */
import { fieldsOf, isObject } from '../../core/util/is-object.ts'
import type { Usage } from '../../core/protocol.ts'
import { malformed, textOrNothing } from './answer.ts'
import type { AnswerBuilder, AnswerReader } from './answer.ts'
import { throwErrorIn } from './failures.ts'
import { countedUsage } from './usage.ts'
import { countIn, listIn, stringIn } from './values.ts'

type Part = Record<string, unknown>

/** Limit of the parts of one answer. */
const PARTS_LIMIT = 1_024

/** The model wrote a malformed call; a retry may succeed. */
const BROKEN_CALL = /^(MALFORMED_FUNCTION_CALL|UNEXPECTED_TOOL_CALL|MALFORMED_RESPONSE)$/

export class ContentReader implements AnswerReader {
	readonly #answer: AnswerBuilder
	readonly #parts: Part[] = []

	constructor(answer: AnswerBuilder) {
		this.#answer = answer
	}

	take(chunk: unknown): void {
		if (!isObject(chunk)) throw malformed('a chunk is not an object')
		throwErrorIn(chunk)
		const answer = this.#answer
		const [candidate] = listIn(chunk.candidates).map(fieldsOf)
		const { blockReason } = fieldsOf(chunk.promptFeedback)
		if (candidate || chunk.usageMetadata !== undefined || blockReason !== undefined) answer.isUntouched = false
		answer.usage = usageIn(chunk.usageMetadata) ?? answer.usage
		for (const part of listIn(fieldsOf(candidate?.content).parts).map(fieldsOf)) this.#takePart(part)
		if (this.#parts.some(({ thoughtSignature }) => thoughtSignature !== undefined))
			answer.state = { parts: this.#parts }
		const reason = stringIn(candidate?.finishReason)
		if (BROKEN_CALL.test(reason)) throw malformed(`the answer ended with ${reason}`)
		if (reason !== '' && reason !== 'FINISH_REASON_UNSPECIFIED') answer.finishWord = reason
		if (typeof blockReason === 'string' && answer.finishWord === '') answer.finishWord = 'SAFETY'
	}

	/** Without `alt=sse`, which some proxies drop, the chunks arrive as one list. */
	takeWhole(body: unknown): void {
		for (const chunk of [body].flat()) this.take(chunk)
	}

	#takePart(part: Part): void {
		const answer = this.#answer
		if (isObject(part.functionCall)) {
			const { id, name, args } = part.functionCall
			answer.addToCall(this.#parts.length, { id, name, arguments: isObject(args) ? args : {} })
		}
		const text = textOrNothing(part.text)
		if (part.thought === true) answer.addReasoning(text)
		else answer.addText(text)
		const last = this.#parts.at(-1)
		// A part with a signature must not be merged.
		const continues = last && isText(last) && isText(part) && last.thought === part.thought
		if (continues) last.text = stringIn(last.text) + text
		else this.#parts.push({ ...part })
		if (this.#parts.length > PARTS_LIMIT) throw malformed(`the answer has more than ${PARTS_LIMIT} parts`)
	}
}

function isText({ text, thoughtSignature }: Part): boolean {
	return typeof text === 'string' && thoughtSignature === undefined
}

/** The API's count of the candidates' tokens does not include thoughts. */
function usageIn(value: unknown): Usage | undefined {
	const usage = fieldsOf(value)
	const counted = countedUsage({
		input: usage.promptTokenCount,
		output: countIn(usage.candidatesTokenCount) ?? 0,
		cached: usage.cachedContentTokenCount,
		reasoning: usage.thoughtsTokenCount,
	})
	if (!counted) return undefined
	counted.input_tokens += countIn(usage.toolUsePromptTokenCount) ?? 0
	counted.output_tokens += counted.reasoning_tokens ?? 0
	return counted
}
