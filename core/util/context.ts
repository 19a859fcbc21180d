/**
 * The context of the current operation: the third-party plugin on whose behalf it runs, so that an uncaught error is reported
 * with the plugin's name; the request or run that log lines are about; and who caused it, for its events. Timers, promises and
 * sockets keep the context in which they were created.
 */
import { AsyncLocalStorage } from 'node:async_hooks'

/** Undefined: on behalf of the gateway itself. */
export type Owner = string | undefined

/** Fields for the lines of the log, such as `request_id` or `run_id`. */
export type LogFields = Readonly<Record<string, string>>

/** Who caused an event: a caller, an agent in one of its runs, or the gateway by itself. */
export interface Actor {
	/** `token`, `local`, `agent`, `gateway`, or another kind from a plugin. */
	kind: string
	/** Unique within its kind; absent if the kind has only one caller. */
	id?: string
	/** For people. */
	label?: string
}

/** Who caused the current operation. Plugins add fields about callers by declaration merging. */
export interface Cause {
	readonly actor: Actor
}

/** A request or a run. Something that it started, such as a timer, may live longer; log lines then no longer have its fields. */
interface Activity {
	fields: LogFields
	isOver: boolean
	cause?: Cause | undefined
}

interface Context {
	owner: Owner
	activity?: Activity
}

const current = new AsyncLocalStorage<Context>()
const none: LogFields = {}

/** The third-party plugin in whose name the current code runs; undefined for the gateway's own. */
export function ownerNow(): Owner {
	return current.getStore()?.owner
}

/** Every call of the gateway into a plugin goes through this. */
export function onBehalfOf<T>(owner: Owner, work: () => T): T {
	const now = current.getStore()
	if (now?.owner === owner) return work()
	return current.run({ ...now, owner }, work)
}

/** Sets the owner of work that began before it was known, such as a request before routing. Its context must not be shared. */
export function continueOnBehalfOf(owner: Owner): void {
	const context = current.getStore()
	if (context) context.owner = owner
}

/** The fields of the current context; empty if it has none, or if its request or run is over. */
export function logFields(): LogFields {
	const activity = current.getStore()?.activity
	return activity === undefined || activity.isOver ? none : activity.fields
}

/** Who caused the current operation; undefined if that is unknown. */
export function causeNow(): Cause | undefined {
	return current.getStore()?.activity?.cause
}

/** For a request, whose caller is known only after its start. Its events name the actor until the returned function is called. */
export function setCause(cause: Cause): () => void {
	const activity = current.getStore()?.activity
	if (!activity) return () => {}
	activity.cause = cause
	return () => (activity.cause = undefined)
}

/** Runs `work` so that its events name the actor, until `work` has settled. */
export function causedBy<T>(cause: Cause, work: () => Promise<T>): Promise<T> {
	return withLogFields(logFields(), work, cause)
}

/**
 * Runs `work` on behalf of the gateway, so that its log lines have these fields and its events name the actor, until `work` has
 * settled.
 */
export async function withLogFields<T>(fields: LogFields, work: () => Promise<T>, cause?: Cause): Promise<T> {
	const activity: Activity = { fields, isOver: false, cause }
	try {
		return await current.run({ owner: undefined, activity }, work)
	} finally {
		activity.isOver = true
		activity.cause = undefined
	}
}

/** The same for a request: from `end` on, lines no longer have the fields. */
export function openLogContext(fields: LogFields) {
	const activity: Activity = { fields, isOver: false }
	return {
		run: <T>(work: () => T): T => current.run({ owner: undefined, activity }, work),
		end: () => void (activity.isOver = true),
	}
}

/** For code that may be called during unrelated work. Called for each event: a snapshot costs a tenth of `run`. */
export const withoutContext: <T, A extends unknown[]>(work: (...given: A) => T, ...given: A) => T = current.run(
	{ owner: undefined },
	() => AsyncLocalStorage.snapshot(),
)

/**
 * After an uncaught exception, Node stays in the context in which it was thrown, and callbacks without their own context would
 * run in it.
 */
export function leaveContext(): void {
	current.enterWith({ owner: undefined })
}
