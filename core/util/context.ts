/**
 * The context of what happens now: the third-party plugin on whose behalf it happens, so that an uncaught error is reported
 * with the plugin's name, and the request or run that the lines of the log are about. Timers, promises and sockets keep
 * the context in which they were made.
 */
import { AsyncLocalStorage } from 'node:async_hooks'

/** Undefined: on behalf of the gateway itself. */
export type Owner = string | undefined

/** Fields for the lines of the log, such as `request_id` or `run_id`. */
export type LogFields = Readonly<Record<string, string>>

interface Context {
	owner: Owner
	/** What was begun in its course, such as a timer, may live much longer: once it is over, lines are not about it. */
	log?: { fields: LogFields; isOver: boolean }
}

const current = new AsyncLocalStorage<Context>()
const none: LogFields = {}

export function ownerNow(): Owner {
	return current.getStore()?.owner
}

/** The gateway enters a plugin only by this. */
export function onBehalfOf<T>(owner: Owner, work: () => T): T {
	return current.run({ ...current.getStore(), owner }, work)
}

/** For work that has begun before its owner is known, such as a request before it is routed. */
export function continueOnBehalfOf(owner: Owner): void {
	const context = current.getStore()
	if (context) context.owner = owner
}

/** The fields of the current context; empty if there are none, or if what they are about is over. */
export function logFields(): LogFields {
	const log = current.getStore()?.log
	return log === undefined || log.isOver ? none : log.fields
}

/** Does `work`, on behalf of the gateway, so that every line written in its course has these fields, until `work` has settled. */
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
	const log = { fields, isOver: false }
	return {
		run: (work) => current.run({ owner: undefined, log }, work),
		end: () => void (log.isOver = true),
	}
}

/** For code that may be called during unrelated work. */
export function withoutContext<T>(work: () => T): T {
	return current.run({ owner: undefined }, work)
}

/**
 * After an uncaught exception Node keeps the context in which it was thrown, and callbacks that have none of their own
 * would run in it.
 */
export function leaveContext(): void {
	current.enterWith({ owner: undefined })
}
