/** From the events of a run to what a client of the chat is told, piece by piece. */
import { statusOf } from '../../core/errors.ts'
import type { FaultCode } from '../../core/errors.ts'
import type { QuestionText } from '../../core/plugin.ts'
import type { Usage } from '../../core/protocol.ts'
import type { EventEnvelope } from '../../core/store/ports.ts'

/** Must not throw. */
export interface Listener {
	/** A piece of what the agent says, never empty. */
	token(content: string): void
	/** The agent calls a tool: a skill, a primitive, a tool of an MCP server. `args` is text where the model wrote no JSON. */
	invokeStart(skill: string, args: unknown): void
	/** What the model is told of the outcome of the latest call that was started, as text. */
	invokeEnd(result: string): void
}

export type End =
	/** `question_id`: it asks, and waits for the answer. */
	{ status: 'answered'; question_id?: string } | { status: 'failed'; code: FaultCode; message: string }

/**
 * What an agent says in one go is what it says beside its calls of tools and then its answer, with blank lines between.
 *
 * It is told while it is made. A model call that breaks off is made again and may come to other words, which nobody can
 * take back: as far as the words are the same nothing is told twice, and where they differ no more is told; see `isWhole`.
 */
export class Telling {
	/** The model that spoke last. */
	model: string | null = null
	tokens_used = 0
	/** Tools that were called, each once, in the order of their first calls. */
	readonly skills = new Set<string>()
	readonly #listener: Listener
	readonly #calls = new Set<string>()
	/** What is certain. */
	#text = ''
	/** What was told of the words of the model call under way, and what its present attempt has brought. */
	#told = ''
	#attempt = ''
	/** The call has ended; its words, if there are any, come next. */
	#answered = false
	#whole = true
	#question: (QuestionText & { question_id: string }) | undefined

	constructor(listener: Listener) {
		this.#listener = listener
	}

	/** All that the agent said. */
	get text(): string {
		return this.#text
	}

	/** The tokens told add up to the text. */
	get isWhole(): boolean {
		return this.#whole
	}

	/** Takes the next event of the run. Answers with how it ended, once it did. */
	hear({ event_type, payload }: Pick<EventEnvelope, 'event_type' | 'payload'>): End | undefined {
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
				this.tokens_used += input_tokens + output_tokens
				this.model = textOf(payload.model)
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
				return this.#paused(payload.question_id)
			case 'run.completed':
				this.#settle()
				return { status: 'answered' }
			case 'run.failed':
				return { status: 'failed', code: codeOf(payload.code), message: textOf(payload.error) }
			case 'run.stopped':
				return { status: 'failed', code: 'stopped', message: 'the run was stopped' }
			default:
				this.#invoked(event_type, payload)
				return undefined
		}
	}

	/** A run may also wait for another run, which is nothing to tell. */
	#paused(question_id: unknown): End | undefined {
		const asked = this.#question
		if (!asked || asked.question_id !== question_id) return undefined
		this.#settle()
		this.#say([asked.question, ...(asked.options ?? []).map((option) => `- ${option}`)].join('\n'))
		return { status: 'answered', question_id: asked.question_id }
	}

	/** The words of one model call, whole. */
	#say(words: string): void {
		this.#tell(words)
		if (this.#told !== words) this.#whole = false
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
		if (!this.#whole) return
		if (words.length <= this.#told.length) {
			if (!this.#told.startsWith(words)) this.#whole = false
			return
		}
		if (!words.startsWith(this.#told)) {
			this.#whole = false
			return
		}
		const gap = this.#told === '' ? this.#gap() : ''
		const piece = words.slice(this.#told.length)
		this.#told = words
		this.#listener.token(gap + piece)
	}

	#gap(): string {
		return this.#text === '' ? '' : '\n\n'
	}

	/** Calls of tools look alike, whatever their events are named. */
	#invoked(event_type: string, payload: Record<string, unknown>): void {
		const { call_id } = payload
		if (typeof call_id !== 'string') return
		if (typeof payload.arguments === 'string') {
			const skill = nameOf(event_type, payload)
			this.skills.add(skill)
			this.#calls.add(call_id)
			this.#listener.invokeStart(skill, parsed(payload.arguments))
			return
		}
		const { result, code, message } = payload
		const isEnd = typeof result === 'string' || typeof code === 'string'
		// One that was started before this began to listen, such as the one that asked, ends unheard.
		if (!isEnd || !this.#calls.delete(call_id)) return
		this.#listener.invokeEnd(typeof result === 'string' ? result : JSON.stringify({ error: { code, message } }))
	}
}

function nameOf(event_type: string, { skill, primitive, server, tool }: Record<string, unknown>): string {
	if (typeof server === 'string' && typeof tool === 'string') return `mcp__${server}__${tool}`
	return [skill, primitive, tool].find((name) => typeof name === 'string') ?? event_type
}

function parsed(text: string): unknown {
	try {
		return text.trim() === '' ? {} : JSON.parse(text)
	} catch {
		return text
	}
}

function textOf(value: unknown): string {
	return typeof value === 'string' ? value : ''
}

function codeOf(code: unknown): FaultCode {
	return typeof code === 'string' && code in statusOf ? (code as FaultCode) : 'internal'
}
