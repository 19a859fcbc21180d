/** One message and its reply. */
import { Fault } from '../../core/errors.ts'
import type { FaultCode } from '../../core/errors.ts'
import type { AgentRef, Context } from '../../core/plugin.ts'
import type { EventEnvelope } from '../../core/store/ports.ts'
import { jsonIn } from '../../core/util/json-in.ts'
import type { OpenQuestion, RunRecord } from '../runs/contract.ts'
import { promptOf } from './message.ts'
import type { ChatMessage } from './message.ts'

export type ChatReply =
	| {
			status: 'answered'
			content: string
			/** Whether the tokens that the listener received add up to `content`. */
			whole: boolean
			metadata: Metadata
	  }
	| { status: 'failed'; code: FaultCode; message: string }

export interface Metadata {
	/** Null if no model was called. */
	model: string | null
	/** Input and output tokens. */
	tokens_used: number
	processing_time_ms: number
	/** Names of the called skills, each once, without other tools. */
	skills_invoked: string[]
	/** Set if the reply is a question. The next message of the session is its answer. */
	question_id?: string
}

/**
 * Events for a client that waits for a reply. `token`: a piece of the answer, never empty. `invoke_start`: a call of a tool (a skill, a
 * primitive, or a tool of an MCP server); `args` is text if the model wrote invalid JSON. `invoke_end`: the result of a call as text,
 * as the model gets it.
 */
export type ReplyEvent =
	| [type: 'token', data: { content: string }]
	| [type: 'invoke_start', data: { skill: string; args: unknown }]
	| [type: 'invoke_end', data: { result: string }]

/** Must not throw. */
export type ReplyListener = (...event: ReplyEvent) => void

/** The trigger of runs of this API. */
const TRIGGER = 'chat'

/**
 * Sends a message to an agent in its current session by `Runs.converse`. It answers an open question of a run of this API, or starts
 * a new run.
 *
 * Throws `not_found`, `queue_full`, or `conflict` if the session waits for the answer to a question of another kind of run, which
 * clients of this API have not seen. If `signal` aborts first, the reply rejects with its reason and the run continues.
 */
export async function begin(
	ctx: Pick<Context, 'use'>,
	agent: AgentRef,
	said: ChatMessage,
	signal: AbortSignal,
	tell: ReplyListener = () => {},
): Promise<{ run_id: string; reply: Promise<ChatReply> }> {
	const began = performance.now()
	const calls = new ToolCalls(tell)
	const prompt = promptOf(said)
	const answerTo = (run: RunRecord, { question_id }: OpenQuestion): string => {
		if (run.trigger === TRIGGER) return prompt
		throw new Fault(
			'conflict',
			`this session waits for the answer to a question of run ${run.run_id}, which was started elsewhere; ` +
				`answer it by POST /v1/agents/${agent.name}/ask-responses/${question_id} of the main API, or begin a new session`,
		)
	}
	const message = { prompt, trigger: TRIGGER, answerTo }
	const { run_id, result } = await ctx.use('runs').converse(agent, message, {
		signal,
		text: (content) => tell('token', { content }),
		event: (event) => calls.handle(event),
	})
	const reply = async (): Promise<ChatReply> => {
		const { error, text, isWhole, model, usage, question } = await result
		if (error) return { status: 'failed', ...error }
		const metadata: Metadata = {
			model,
			tokens_used: usage.input_tokens + usage.output_tokens,
			processing_time_ms: Math.round(performance.now() - began),
			skills_invoked: [...calls.skills],
			...(question && { question_id: question.question_id }),
		}
		return { status: 'answered', content: text, whole: isWhole, metadata }
	}
	const replied = reply()
	replied.catch(() => {}) // nothing awaits it if the client has left
	return { run_id, reply: replied }
}

/** Converts a run's events about tool calls to events for the client. */
export class ToolCalls {
	/** Skills that were called, each once, in the order of their first calls. */
	readonly skills = new Set<string>()
	readonly #tell: ReplyListener
	readonly #open = new Set<string>()

	constructor(tell: ReplyListener) {
		this.#tell = tell
	}

	/** Handles the next event of the run. Recognizes calls by their payload, whatever the event type. */
	handle({ event_type, payload }: Pick<EventEnvelope, 'event_type' | 'payload'>): void {
		const { call_id } = payload
		if (typeof call_id !== 'string') return
		if (typeof payload.arguments === 'string') {
			const name = nameOf(event_type, payload)
			if (event_type === 'skill.invoked') this.skills.add(name)
			this.#open.add(call_id)
			this.#tell('invoke_start', { skill: name, args: parsed(payload.arguments) })
			return
		}
		const { result, code, message } = payload
		const isEnd = typeof result === 'string' || typeof code === 'string'
		// Ignores calls that started earlier, such as the call that asked the question.
		if (!isEnd || !this.#open.delete(call_id)) return
		this.#tell('invoke_end', {
			result: typeof result === 'string' ? result : JSON.stringify({ error: { code, message } }),
		})
	}
}

function nameOf(event_type: string, { skill, primitive, server, tool }: Record<string, unknown>): string {
	if (typeof server === 'string' && typeof tool === 'string') return `mcp__${server}__${tool}`
	return [skill, primitive, tool].find((name) => typeof name === 'string') ?? event_type
}

function parsed(text: string): unknown {
	const value = text.trim() === '' ? {} : jsonIn(text)
	return value === undefined ? text : value
}
