/** Reads the events of a streamed response, or a whole one, into an answer. */
import { fieldsOf, isObject } from '../../core/util/is-object.ts'
import type { Usage } from '../../core/protocol.ts'
import { malformed, textOrNothing } from './answer.ts'
import type { AnswerBuilder, AnswerReader } from './answer.ts'
import { errorIn, StreamError, throwErrorIn } from './failures.ts'
import { countedUsage } from './usage.ts'
import { listIn, stringIn } from './values.ts'

export class ResponseReader implements AnswerReader {
	readonly #answer: AnswerBuilder
	readonly #output: Record<string, unknown>[] = []
	/** Ids of items whose text arrived as deltas: the complete item only repeats it. */
	readonly #streamed = new Set<unknown>()

	constructor(answer: AnswerBuilder) {
		this.#answer = answer
	}

	take(event: unknown): void {
		if (!isObject(event)) throw malformed('an event is not an object')
		const answer = this.#answer
		const type = stringIn(event.type)
		if (type.startsWith('response.')) answer.isUntouched = false
		switch (type) {
			case 'response.output_text.delta':
			case 'response.refusal.delta':
				this.#streamed.add(event.item_id)
				return answer.addText(textOrNothing(event.delta))
			case 'response.reasoning_summary_part.added':
				return answer.addReasoning(answer.reasoning === '' ? '' : '\n\n')
			case 'response.reasoning_summary_text.delta':
			case 'response.reasoning_text.delta':
				this.#streamed.add(event.item_id)
				return answer.addReasoning(textOrNothing(event.delta))
			case 'response.output_item.done':
				return this.#takeItem(event.item)
			case 'response.completed':
			case 'response.incomplete':
			case 'response.failed':
				return this.takeWhole(event.response)
			case 'error':
				throw new StreamError(errorIn({ error: isObject(event.error) ? event.error : event }) ?? unsaid)
		}
		if (type === '') throwErrorIn(event)
	}

	/** The complete response, at the end of a stream or instead of one. */
	takeWhole(response: unknown): void {
		if (!isObject(response)) throw malformed('the response is not an object')
		throwErrorIn(response)
		const answer = this.#answer
		const { status, output, usage } = response
		if (Array.isArray(output) || status !== undefined) answer.isUntouched = false
		if (this.#output.length === 0) for (const item of listIn(output)) this.#takeItem(item)
		answer.usage = usageIn(usage)
		if (this.#output.some(({ type }) => type === 'reasoning')) answer.state = { output: this.#output }
		if (status === 'failed') throw new StreamError(unsaid)
		if (status === 'incomplete') answer.finishWord = stringIn(fieldsOf(response.incomplete_details).reason) || 'length'
		else answer.finishWord = 'completed'
	}

	#takeItem(item: unknown): void {
		if (!isObject(item)) throw malformed('an item of the output is not an object')
		const answer = this.#answer
		// Reasoning that is not encrypted could be sent back only if the server had stored it.
		if (item.type !== 'reasoning' || typeof item.encrypted_content === 'string') this.#output.push(item)
		const isNew = !this.#streamed.has(item.id)
		if (item.type === 'function_call') {
			const { call_id, name, arguments: args } = item
			answer.addToCall(stringIn(item.id) || stringIn(call_id), { id: call_id, name, arguments: args })
		} else if (item.type === 'message' && isNew) {
			for (const part of listIn(item.content).map(fieldsOf)) answer.addText(textOrNothing(part.text ?? part.refusal))
		} else if (item.type === 'reasoning' && isNew) {
			const parts = [...listIn(item.summary), ...listIn(item.content)].map((part) => stringIn(fieldsOf(part).text))
			answer.addReasoning(parts.join('\n\n'))
		}
	}
}

const unsaid = { message: 'the response failed, and the server gives no reason' }

function usageIn(value: unknown): Usage | undefined {
	const usage = fieldsOf(value)
	return countedUsage({
		input: usage.input_tokens,
		output: usage.output_tokens,
		cached: fieldsOf(usage.input_tokens_details).cached_tokens,
		reasoning: fieldsOf(usage.output_tokens_details).reasoning_tokens,
	})
}
