/** From the events of a run to its answer: the text, piece by piece while it is made, and how it ended. */
import { statusOf } from './errors.ts'
import type { FaultCode, WireError } from './errors.ts'
import type { QuestionText } from './plugin.ts'
import type { Usage } from './protocol.ts'
import type { EventEnvelope } from './store/ports.ts'

export type AnswerEnd =
	| { status: 'completed' }
	/** It asks, and waits for the answer; the question is the end of the text. */
	| { status: 'asks'; question_id: string }
	| { status: 'failed'; error: WireError }

type Asked = QuestionText & { question_id: string }

/**
 * An answer is what the agent says beside its calls of tools and then at the end, with blank lines between.
 *
 * Pieces are told while they are made. A model call that breaks off is made again and may come to other words, which
 * nobody can take back: as far as they are the same nothing is told twice, and where they differ no more is told; see
 * `isWhole`.
 */
export class AnswerStream {
	/** Of all model calls heard. */
	readonly usage: Usage = { input_tokens: 0, output_tokens: 0 }
	/** The model that spoke last; null where none has. */
	model: string | null = null
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
	#whole = true
	#question: Asked | undefined

	/** `piece` is given what the text is made of, never empty; absent where nobody wants it before the end. Must not throw. */
	constructor(piece?: (text: string) => void) {
		this.#piece = piece
	}

	get text(): string {
		return this.#text
	}

	/** The pieces add up to the text. Once they do not, they never will. */
	get isWhole(): boolean {
		return this.#whole
	}

	/** Takes the next event of the run, whatever it is. Answers with how it ended, once it did. */
	hear({ event_type, payload }: Pick<EventEnvelope, 'event_type' | 'payload'>): AnswerEnd | undefined {
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
				this.model = textOf(payload.model)
				this.finish_reason = textOf(payload.finish_reason)
				this.#answered = true
				return undefined
			}
			case 'message.assistant':
				this.#say(textOf(payload.content))
				return undefined
			case 'question.asked':
				this.#question = payload as unknown as Asked
				return undefined
			case 'run.paused': {
				// A run may also wait for another run, which is nothing to tell by itself.
				const asked = this.#question
				return asked && asked.question_id === payload.question_id ? this.#ask(asked, questionText(asked)) : undefined
			}
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

	/** A sub-agent asks, for which the run waits: the question is the end of the text, as one of its own. */
	askBelow(asked: Asked): AnswerEnd {
		return this.#ask(asked, questionBelow(questionText(asked)))
	}

	#ask({ question_id }: Asked, words: string): AnswerEnd {
		this.#settle()
		this.#say(words)
		return { status: 'asks', question_id }
	}

	/** The words of one model call, whole. */
	#say(words: string): void {
		this.#tell(words)
		if (this.#piece && this.#told !== words) this.#whole = false
		this.#text += this.#gap() + words
		this.#told = this.#attempt = ''
		this.#answered = false
	}

	/** A call that has ended without words may have shown some of an attempt that broke off. */
	#settle(): void {
		if (!this.#answered) return
		this.#answered = false
		if (this.#told !== '') this.#whole = false
		this.#told = ''
	}

	#tell(words: string): void {
		if (!this.#piece || !this.#whole) return
		if (words.length <= this.#told.length) {
			this.#whole = this.#told.startsWith(words)
			return
		}
		if (!words.startsWith(this.#told)) {
			this.#whole = false
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

/** A question as an answer says it. */
export function questionText({ question, options = [] }: QuestionText): string {
	return [question, ...options.map((option) => `- ${option}`)].join('\n')
}

/** The text of a question for whoever talks with an agent above the one that asks. */
export function questionBelow(text: string): string {
	return `A sub-agent asks:\n\n${text}`
}

function textOf(value: unknown): string {
	return typeof value === 'string' ? value : ''
}

function codeOf(code: unknown): FaultCode {
	return typeof code === 'string' && code in statusOf ? (code as FaultCode) : 'internal'
}
