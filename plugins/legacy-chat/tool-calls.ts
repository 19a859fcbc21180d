/** Derives the messages about tool calls for a client of the chat from the events of a run. */
import { jsonIn } from '../../core/util/json-in.ts'
import type { EventEnvelope } from '../../core/store/ports.ts'

/**
 * What a client is told while it waits for a reply: a piece of what the agent says, never empty; a call of a tool (a skill, a
 * primitive, a tool of an MCP server), with `args` as text where the model wrote no JSON; the outcome of the latest call, as the
 * model gets it, as text.
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

	/** Takes the next event of the run, whatever it is: calls of tools look alike, however their events are named. */
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
		// One that was started before this began to listen, such as the one that asked, ends unheard.
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
