/** Converts a run's events about tool calls to events for the client. */
import { jsonIn } from '../../core/util/json-in.ts'
import type { EventEnvelope } from '../../core/store/ports.ts'

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
