/** Converts the events of a run to the text of its answer, piece by piece, and to its end. */
import { codeIn } from '../../core/errors.ts'
import type { WireError } from '../../core/errors.ts'
import { addUsage } from '../../core/protocol.ts'
import type { Usage } from '../../core/protocol.ts'
import type { EventEnvelope } from '../../core/store/ports.ts'

export type AnswerEnd = { status: 'completed' } | { status: 'failed'; error: WireError }

/**
 * An answer is the text that the agent writes between its tool calls and at the end, separated by blank lines.
 *
 * Pieces are sent as the model streams them. A model call that breaks off is retried and may return different words, but
 * sent pieces cannot be withdrawn: an identical beginning is not sent twice, and after a difference nothing more is sent
 * (`isWhole` is false).
 */
export class AnswerStream {
	/** Of all model calls so far. */
	readonly usage: Usage = { input_tokens: 0, output_tokens: 0 }
	/** The model that answered last; null before the first answer. */
	model: string | null = null
	/** Finish reason of the model's latest answer, as the provider states it. */
	finish_reason = ''
	/** The text of finished model calls. */
	text = ''
	/** Whether the pieces add up to the text. Once false, it stays false. */
	isWhole = true
	readonly #piece: ((text: string) => void) | undefined
	/** The text of the current model call that was sent. */
	#sent = ''
	/** The text that its current attempt has returned. */
	#attempt = ''
	/** The beginning of the answer, from earlier calls that the current one continues. */
	#continued = ''
	/** The model call has ended; its text, if any, follows. */
	#answered = false

	/** `piece` receives the text in pieces, never empty; absent if only the whole text is wanted. Must not throw. */
	constructor(piece?: (text: string) => void) {
		this.#piece = piece
	}

	/** Takes the next event of the run, of any type. Returns how the run ended, once it has. */
	handle({ event_type, payload }: Pick<EventEnvelope, 'event_type' | 'payload'>): AnswerEnd | undefined {
		switch (event_type) {
			case 'model.request':
				this.#settle()
				this.#attempt = this.#continued
				return undefined
			case 'model.retry':
			case 'model.fallback':
				this.#attempt = this.#continued
				return undefined
			case 'model.continued':
				this.#continued = this.#attempt
				return undefined
			case 'model.stream':
				this.#attempt += textOf(payload.content)
				this.#send(this.#attempt)
				return undefined
			case 'model.response': {
				addUsage(this.usage, { input_tokens: 0, output_tokens: 0, ...(payload.usage as Partial<Usage> | undefined) })
				this.model = textOf(payload.model)
				this.finish_reason = textOf(payload.finish_reason)
				this.#answered = true
				this.#continued = ''
				return undefined
			}
			case 'message.assistant':
				this.#say(textOf(payload.content))
				return undefined
			case 'run.completed':
				this.#settle()
				return { status: 'completed' }
			case 'run.failed':
				return { status: 'failed', error: errorIn(payload) }
			case 'run.stopped':
				return { status: 'failed', error: { code: 'stopped', message: 'the run was stopped' } }
			default:
				return undefined
		}
	}

	/** Ends the text with a question. */
	ask(words: string): void {
		this.#settle()
		this.#say(words)
	}

	/** The text of one model call, complete. */
	#say(words: string): void {
		this.#send(words)
		if (this.#piece && this.#sent !== words) this.isWhole = false
		this.text += this.#gap() + words
		this.#sent = this.#attempt = ''
		this.#answered = false
	}

	/** Called after each model call: if it ended without text, pieces of an earlier attempt may have been sent. */
	#settle(): void {
		if (!this.#answered) return
		this.#answered = false
		if (this.#sent !== '') this.isWhole = false
		this.#sent = ''
	}

	#send(words: string): void {
		if (!this.#piece || !this.isWhole) return
		if (words.length <= this.#sent.length) {
			this.isWhole = this.#sent.startsWith(words)
			return
		}
		if (!words.startsWith(this.#sent)) {
			this.isWhole = false
			return
		}
		const gap = this.#sent === '' ? this.#gap() : ''
		const piece = words.slice(this.#sent.length)
		this.#sent = words
		this.#piece(gap + piece)
	}

	#gap(): string {
		return this.text === '' ? '' : '\n\n'
	}
}

function errorIn({ code, error, provider_code, provider_status }: Record<string, unknown>): WireError {
	return {
		code: codeIn(code),
		message: textOf(error),
		...(typeof provider_code === 'string' && { provider_code }),
		...(typeof provider_status === 'number' && { provider_status }),
	}
}

function textOf(value: unknown): string {
	return typeof value === 'string' ? value : ''
}
