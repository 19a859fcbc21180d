/** What a run that people wait for is doing: the tools that it calls, from its events, whichever plugins the tools are of. */
import type { EventEnvelope } from '../../../core/store/ports.ts'
import { texts } from './texts.ts'

export type RunProgress = ReturnType<typeof openProgress>

/** Calls whose end was missed, such as those that wait for a person, are dropped beyond this number. */
const RUNNING_LIMIT = 16

export function openProgress() {
	const running = new Map<string, string>()
	let done = 0
	return {
		/** Names of the tools that are being called, by call. */
		running,
		/** Calls that have ended. */
		get done() {
			return done
		},
		/** Takes note of an event, if it is the beginning or the end of a call. */
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

/** One line as Markdown; '' if nothing was called. */
export function progressText({ running, done }: RunProgress): string {
	const names = [...new Set(running.values())]
	return names.length === 0 && done === 0 ? '' : texts.progress(names, done)
}

/** As the events of primitives, skills and MCP servers name what is called. */
function nameOf({ primitive, skill, server, tool }: Record<string, unknown>): string | undefined {
	const name = primitive ?? skill ?? tool
	if (typeof name !== 'string') return undefined
	return typeof server === 'string' ? `${server}: ${name}` : name
}
