/** Derives the messages about tool calls for a client of the chat from the events of a run. */
import { jsonIn } from '../../core/util/json-in.ts'
import type { EventEnvelope } from '../../core/store/ports.ts'

/** Must not throw. */
export interface ToolListener {
	/** The agent calls a tool: a skill, a primitive, a tool of an MCP server. `args` is text where the model wrote no JSON. */
	invokeStart(skill: string, args: unknown): void
	/** The outcome of the latest call that was started, as the model gets it, as text. */
	invokeEnd(result: string): void
}

export class ToolCalls {
	/** Skills that were called, each once, in the order of their first calls. */
	readonly skills = new Set<string>()
	readonly #listener: ToolListener
	readonly #open = new Set<string>()

	constructor(listener: ToolListener) {
		this.#listener = listener
	}

	/** Takes the next event of the run, whatever it is: calls of tools look alike, however their events are named. */
	handle({ event_type, payload }: Pick<EventEnvelope, 'event_type' | 'payload'>): void {
		const { call_id } = payload
		if (typeof call_id !== 'string') return
		if (typeof payload.arguments === 'string') {
			const name = nameOf(event_type, payload)
			if (event_type === 'skill.invoked') this.skills.add(name)
			this.#open.add(call_id)
			this.#listener.invokeStart(name, parsed(payload.arguments))
			return
		}
		const { result, code, message } = payload
		const isEnd = typeof result === 'string' || typeof code === 'string'
		// One that was started before this began to listen, such as the one that asked, ends unheard.
		if (!isEnd || !this.#open.delete(call_id)) return
		this.#listener.invokeEnd(typeof result === 'string' ? result : JSON.stringify({ error: { code, message } }))
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
