/**
 * The context of a log line: the request or the run during which the line is written, wherever in
 * the code that is.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import { onBehalfOf } from '../util/on-behalf.ts'

/** Fields for the lines of the log, such as `request_id` or `run_id`. */
export type LogFields = Readonly<Record<string, string>>

interface LogContext {
	fields: LogFields
	/** What was begun in its course, such as a timer, may live much longer: its lines are not about it any more. */
	isOver: boolean
}

const current = new AsyncLocalStorage<LogContext>()
const none: LogFields = {}

/** The fields of the current context; empty if there is none, or if it has ended. */
export function logFields(): LogFields {
	const context = current.getStore()
	return context === undefined || context.isOver ? none : context.fields
}

/**
 * Does `work`, on behalf of the gateway, so that every line written in its course has these fields, until `work` has settled.
 */
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
		run: (work) => onBehalfOf(undefined, () => current.run(context, work)),
		end: () => void (context.isOver = true),
	}
}

/** Does `work` without a context: for code that may be called during unrelated work. */
export function withoutLogFields<T>(work: () => T): T {
	return onBehalfOf(undefined, () => current.exit(work))
}

/** As `leaveOwner`: an uncaught exception leaves its context behind. */
export function leaveLogFields(): void {
	current.enterWith({ fields: none, isOver: true })
}
