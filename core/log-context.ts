/**
 * What the log says beside a line's own words: the request or the run in whose course the line is written, wherever in
 * the code that is.
 */
import { AsyncLocalStorage } from 'node:async_hooks'

/** Fields for the lines of the log, such as `request_id` or `run_id`. */
export type LogFields = Readonly<Record<string, string>>

interface LogContext {
	fields: LogFields
	/** What was begun in its course, such as a timer, may live much longer: its lines are not about it any more. */
	isOver: boolean
}

const current = new AsyncLocalStorage<LogContext>()
const none: LogFields = {}

/** The fields of what is under way where this is called; empty where that is nothing, or is over. */
export function logFields(): LogFields {
	const context = current.getStore()
	return context === undefined || context.isOver ? none : context.fields
}

/** Does `work` so that every line written in its course has these fields, until `work` has settled. */
export async function withLogFields<T>(fields: LogFields, work: () => Promise<T>): Promise<T> {
	const { run, end } = openLogContext(fields)
	try {
		return await run(work)
	} finally {
		end()
	}
}

/** The same for what ends by an event: from `end` on, lines no longer have the fields. */
export function openLogContext(fields: LogFields): { run: <T>(work: () => T) => T; end: () => void } {
	const context: LogContext = { fields, isOver: false }
	return {
		run: (work) => current.run(context, work),
		end: () => void (context.isOver = true),
	}
}

/** Does `work` as what is about nothing: for what is called in the course of whatever happens to call it. */
export function withoutLogFields<T>(work: () => T): T {
	return current.exit(work)
}
