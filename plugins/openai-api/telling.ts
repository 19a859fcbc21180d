/** From the events of a run to one answer. */
import { statusOf } from '../../core/errors.ts'
import type { FaultCode, WireError } from '../../core/errors.ts'
import type { QuestionText } from '../../core/plugin.ts'
import type { Usage } from '../../core/protocol.ts'
import type { EventEnvelope } from '../../core/store/ports.ts'

export type End =
	| { status: 'completed' }
	/** It asks, and waits for the answer; the question is the end of the text. */
	| { status: 'asks' }
	| { status: 'failed'; error: WireError }
	/** It goes on in other words than those that were told already, which nobody can take back. */
	| { status: 'contradicts' }

/**
 * An answer is what the agent says beside its calls of tools and then at the end, with blank lines between.
 *
 * Pieces are told while they are made. A model call that breaks off is made again and may come to other words: as far as
 * they are the same nothing is told twice, and where they differ the answer cannot go on.
 */
export class Telling {
	/** Of all model calls heard. */
	readonly usage: Usage = { input_tokens: 0, output_tokens: 0 }
	/** How the latest answer of the model ended, in the provider's words. */
	finish_reason = ''
	readonly #piece: ((text: string) => void) | undefined
	/** What is certain. */
	#text = ''
	/** What was told of the words of the model call under way, and what its present attempt has brought. */
	#told = ''
	#attempt = ''
	/** The call has ended; its words, if there are any, come next. */
	#answered = false
	#contradicts = false
	#question: (QuestionText & { question_id: string }) | undefined

	/** `piece` is given what the text is made of, never empty; absent where nobody wants it before the end. */
	constructor(piece?: (text: string) => void) {
		this.#piece = piece
	}

	get text(): string {
		return this.#text
	}

	/** Takes the next event of the run. Answers with how it ended, once it did. */
	hear({ event_type, payload }: Pick<EventEnvelope, 'event_type' | 'payload'>): End | undefined {
		const end = this.#heed(event_type, payload)
		return this.#contradicts ? { status: 'contradicts' } : end
	}

	#heed(event_type: string, payload: Record<string, unknown>): End | undefined {
		switch (event_type) {
			case 'model.request':
				this.#settle()
				this.#attempt = ''
				return undefined
			case 'model.retry':
			case 'model.fallback':
				this.#attempt = ''
				return undefined
			case 'model.stream':
				this.#attempt += textOf(payload.content)
				this.#tell(this.#attempt)
				return undefined
			case 'model.response': {
				const { input_tokens = 0, output_tokens = 0 } = Object(payload.usage) as Partial<Usage>
				this.usage.input_tokens += input_tokens
				this.usage.output_tokens += output_tokens
				this.finish_reason = textOf(payload.finish_reason)
				this.#answered = true
				return undefined
			}
			case 'message.assistant':
				this.#say(textOf(payload.content))
				return undefined
			case 'question.asked':
				this.#question = payload as unknown as QuestionText & { question_id: string }
				return undefined
			case 'run.paused':
				return this.#asks(payload.question_id) ? { status: 'asks' } : undefined
			case 'run.completed':
				this.#settle()
				return { status: 'completed' }
			case 'run.failed':
				return { status: 'failed', error: { code: codeOf(payload.code), message: textOf(payload.error) } }
			case 'run.stopped':
				return { status: 'failed', error: { code: 'stopped', message: 'the run was stopped' } }
			default:
				return undefined
		}
	}

	/** A run may also wait for another run, which is nothing to tell. */
	#asks(question_id: unknown): boolean {
		const asked = this.#question
		if (!asked || asked.question_id !== question_id) return false
		this.#settle()
		this.#say([asked.question, ...(asked.options ?? []).map((option) => `- ${option}`)].join('\n'))
		return true
	}

	/** The words of one model call, whole. */
	#say(words: string): void {
		this.#tell(words)
		if (this.#piece && this.#told !== words) this.#contradicts = true
		this.#text += this.#gap() + words
		this.#told = this.#attempt = ''
		this.#answered = false
	}

	/** A call that has ended without words may have shown some of an attempt that broke off. */
	#settle(): void {
		if (!this.#answered) return
		this.#answered = false
		if (this.#told !== '') this.#contradicts = true
		this.#told = ''
	}

	#tell(words: string): void {
		if (!this.#piece || this.#contradicts) return
		if (words.length <= this.#told.length) {
			this.#contradicts = !this.#told.startsWith(words)
			return
		}
		if (!words.startsWith(this.#told)) {
			this.#contradicts = true
			return
		}
		const gap = this.#told === '' ? this.#gap() : ''
		const piece = words.slice(this.#told.length)
		this.#told = words
		this.#piece(gap + piece)
	}

	#gap(): string {
		return this.#text === '' ? '' : '\n\n'
	}
}

function textOf(value: unknown): string {
	return typeof value === 'string' ? value : ''
}

function codeOf(code: unknown): FaultCode {
	return typeof code === 'string' && code in statusOf ? (code as FaultCode) : 'internal'
}
