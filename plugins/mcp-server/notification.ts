/** Notifications about a run's events. They never contain arguments, results or texts of tools. */
import type { LoggingLevel } from '@modelcontextprotocol/sdk/types.js'
import type { EventEnvelope } from '../../core/store/ports.ts'

export interface RunNotification {
	message: string
	/** For the client's log. */
	level: LoggingLevel
	/** It shows how far the run is. */
	isProgress: boolean
}

/** Undefined for an event that says nothing to the client. */
export function notificationOf({ event_type, payload }: EventEnvelope): RunNotification | undefined {
	const progress = (message: string, level: LoggingLevel): RunNotification => ({ message, level, isProgress: true })
	const log = (message: string, level: LoggingLevel): RunNotification => ({ message, level, isProgress: false })
	switch (event_type) {
		case 'run.queued':
			return progress('waits for an earlier run of the conversation', 'info')
		case 'model.queued':
			return progress("waits for other calls of its model's provider", 'info')
		case 'model.request':
			return progress('thinks', 'debug')
		case 'model.retry':
		case 'model.fallback':
			return progress('the model did not answer; asks again', 'warning')
		case 'question.asked':
			return progress('asks a question', 'notice')
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
				? progress(`calls ${toolIn(payload) ?? event_type}`, 'info')
				: undefined
	}
}

/** Events of tool calls have the same fields, whatever their types. */
function toolIn({ skill, primitive, server, tool }: Record<string, unknown>): string | undefined {
	if (typeof server === 'string' && typeof tool === 'string') return `${tool} of ${server}`
	return [skill, primitive, tool].find((name) => typeof name === 'string')
}
