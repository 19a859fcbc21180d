/** The tool calls of a run, from its events. Works for the tools of all plugins. */
import type { EventEnvelope } from '../../../core/store/ports.ts'
import { texts } from './texts.ts'

export type RunProgress = ReturnType<typeof openProgress>

/** Further calls are not shown. Some calls have no end event, such as those that wait for a person. */
const RUNNING_LIMIT = 16

export function openProgress() {
	const running = new Map<string, string>()
	let done = 0
	return {
		/** Names of the tools of running calls, by call id. */
		running,
		/** Number of calls that have ended. */
		get done() {
			return done
		},
		/** Handles an event. Only the start and the end of a call have an effect. */
		add({ payload }: Pick<EventEnvelope, 'payload'>): void {
			const { call_id, arguments: args } = payload
			if (typeof call_id !== 'string') return
			const name = nameOf(payload)
			if (args !== undefined && name !== undefined) {
				if (running.size < RUNNING_LIMIT) running.set(call_id, name)
			} else if (running.delete(call_id)) done++
		},
	}
}

/** One line of Markdown; '' if there were no calls. */
export function progressText({ running, done }: RunProgress): string {
	const names = [...new Set(running.values())]
	return names.length === 0 && done === 0 ? '' : texts.progress(names, done)
}

/** The called tool, by the payload fields of primitives, skills and MCP servers. */
function nameOf({ primitive, skill, server, tool }: Record<string, unknown>): string | undefined {
	const name = primitive ?? skill ?? tool
	if (typeof name !== 'string') return undefined
	return typeof server === 'string' ? `${server}: ${name}` : name
}
