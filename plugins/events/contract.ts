import type { ServerResponse } from 'node:http'
import type { LiveFilter } from '../../core/events/event-bus.ts'
import type { Cursor, EventEnvelope, LogFilter } from '../../core/store/ports.ts'
import type { Credentials } from '../auth/contract.ts'

export interface EventSettings {
	/** Events older than this are deleted, except those of runs that have not ended. */
	retention_days: number
	/** Streams open at the same time; the next one gets 503. */
	max_streams: number
	/** Seconds after which a stream without traffic gets a comment, for the proxies on its way. */
	heartbeat_s: number
	/** Seconds for which a client may take nothing of what waits for it, before it is cut off. */
	stall_timeout_s: number
}

export interface StreamRequest {
	/** Not begun yet; from now on the stream's. */
	response: ServerResponse
	/** Looked at again and again while the stream is open. */
	credentials: Credentials
	filter: LiveFilter
	/**
	 * Resume after this position, a cursor or the id of an event; null: begin with the next event, as for a position that the
	 * log does not know. With `endsWithRun` an unknown position means the beginning of the run.
	 */
	after: string | null
	/** The stream ends with this event; default: none does. Only for streams of one run. */
	endsWithRun?: boolean
}

/** A stream of one run, which is about to start. It hears from the moment in which this exists. */
export interface RunStream {
	/** Answers with everything that was heard, and ends with the run. Otherwise as `Events.stream`. Call it once, or `drop`. */
	open(response: ServerResponse): Promise<void>
	drop(): void
}

export interface AuditRequest {
	filter: LogFilter
	cursor: Cursor | null
	limit: number
}

export interface AuditPage {
	/** Newest first. */
	events: EventEnvelope[]
	/** Null where there is nothing older. May be there with fewer events than asked for, even none. */
	next_cursor: Cursor | null
}

export interface Events {
	/**
	 * Turns a response into an event stream. Settles once it is open; it ends with its client, its caller's authority or
	 * this plugin. Throws `unavailable` where too many streams are open.
	 */
	stream(request: StreamRequest): Promise<void>
	/**
	 * Hears the events of a run before it starts, so that its stream lacks none, the pieces of its first answer included. Throws
	 * `unavailable` where too many streams are open.
	 */
	ofRun(run_id: string, credentials: Credentials): RunStream
	/** How many streams are open. */
	streams(): number
	/** Throws `invalid_request` for an invalid cursor. */
	audit(request: AuditRequest): Promise<AuditPage>
	/** Deletes events older than the retention. Returns how many were deleted. */
	prune(): Promise<number>
}

declare module '../../core/plugin.ts' {
	interface Services {
		events: Events
	}
}

declare module '../../config/types.ts' {
	interface Config {
		events: EventSettings
	}
}
