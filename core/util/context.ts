/**
 * The context of what happens now: the third-party plugin on whose behalf it happens, so that an uncaught error is reported
 * with the plugin's name; the request or run that the lines of the log are about; and who caused it, for its events. Timers,
 * promises and sockets keep the context in which they were made.
 */
import { AsyncLocalStorage } from 'node:async_hooks'

/** Undefined: on behalf of the gateway itself. */
export type Owner = string | undefined

/** Fields for the lines of the log, such as `request_id` or `run_id`. */
export type LogFields = Readonly<Record<string, string>>

/** Who caused an event: a caller, an agent in one of its runs, or the gateway by itself. */
export interface Actor {
	/** `token`, `local`, `agent`, `gateway`, or what else a plugin lets in. */
	kind: string
	/** Unique among those of its kind; absent if its kind is one caller. */
	id?: string
	/** For people. */
	label?: string
}

/** Who caused what happens. Plugins add what else they must know of a caller, by declaration merging. */
export interface Cause {
	readonly actor: Actor
}

/** What was begun in its course, such as a timer, may live much longer: once it is over, lines are not about it. */
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

export function ownerNow(): Owner {
	return current.getStore()?.owner
}

/** The gateway enters a plugin only by this. */
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

/** The fields of the current context; empty if there are none, or if what they are about is over. */
export function logFields(): LogFields {
	const activity = current.getStore()?.activity
	return activity === undefined || activity.isOver ? none : activity.fields
}

/** Who caused what happens now; undefined if that is unknown. */
export function causeNow(): Cause | undefined {
	return current.getStore()?.activity?.cause
}

/** For a request, whose caller is known only after it has begun. Its events name the actor until the returned function is called. */
export function setCause(cause: Cause): () => void {
	const activity = current.getStore()?.activity
	if (!activity) return () => {}
	activity.cause = cause
	return () => (activity.cause = undefined)
}

/** Does `work` so that its events name the actor, until `work` has settled. */
export function causedBy<T>(cause: Cause, work: () => Promise<T>): Promise<T> {
	return withLogFields(logFields(), work, cause)
}

/**
 * Does `work`, on behalf of the gateway, so that every line written in its course has these fields, and its events name the
 * actor, until `work` has settled.
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

/** For code that may be called during unrelated work. Entered for each event: a snapshot costs a tenth of `run`. */
export const withoutContext: <T, A extends unknown[]>(work: (...given: A) => T, ...given: A) => T = current.run(
	{ owner: undefined },
	() => AsyncLocalStorage.snapshot(),
)

/**
 * After an uncaught exception Node keeps the context in which it was thrown, and callbacks that have none of their own
 * would run in it.
 */
export function leaveContext(): void {
	current.enterWith({ owner: undefined })
}
