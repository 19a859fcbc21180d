/** Converts the events of a run to notifications. They never contain arguments, results or texts of tools. */
import type { LoggingLevel } from '@modelcontextprotocol/sdk/types.js'
import type { EventEnvelope } from '../../core/store/ports.ts'

export interface RunNotification {
	message: string
	/** For the client's log. */
	level: LoggingLevel
	/** Whether it is sent as progress too. */
	isProgress: boolean
}

/** Undefined for an event that is of no interest to the client. */
export function notificationOf({ event_type, payload }: EventEnvelope): RunNotification | undefined {
	const progress = (message: string, level: LoggingLevel): RunNotification => ({ message, level, isProgress: true })
	const log = (message: string, level: LoggingLevel): RunNotification => ({ message, level, isProgress: false })
	switch (event_type) {
		case 'run.queued':
			return progress('waiting for an earlier run of the conversation', 'info')
		case 'model.queued':
			return progress("waiting for other calls to the model's provider", 'info')
		case 'model.request':
			return progress('thinking', 'debug')
		case 'model.retry':
		case 'model.fallback':
			return progress('the model did not answer; retrying', 'warning')
		case 'question.asked':
			return progress('asking a question', 'notice')
		case 'run.completed':
			return log('completed', 'info')
		case 'run.stopped':
			return log('stopped', 'notice')
		case 'run.failed':
			return log(`failed: ${String(payload.code)}`, 'error')
		case 'primitive.failed':
		case 'skill.failed':
		case 'mcp.failed':
			return log(`${toolIn(payload) ?? 'a tool'} failed: ${String(payload.code)}`, 'warning')
		default:
			return typeof payload.arguments === 'string'
				? progress(`calling ${toolIn(payload) ?? event_type}`, 'info')
				: undefined
	}
}

/** The tool of an event about a tool call. All types of such events have the same fields. */
function toolIn({ skill, primitive, server, tool }: Record<string, unknown>): string | undefined {
	if (typeof server === 'string' && typeof tool === 'string') return `${tool} of ${server}`
	return [skill, primitive, tool].find((name) => typeof name === 'string')
}
