import type { ServerResponse } from 'node:http'
import type { LiveFilter } from '../../core/events/event-bus.ts'
import type { Cursor, EventEnvelope, LogFilter } from '../../core/store/ports.ts'
import type { Credentials, StreamSettings } from '../auth/contract.ts'

export interface EventSettings extends StreamSettings {
	/** Events older than this are deleted, except those of runs that have not ended. */
	retention_days: number
	/** Streams open at the same time; the next one gets 503. */
	max_streams: number
}

export interface StreamRequest {
	/** Not begun yet; it belongs to the stream from now on. */
	response: ServerResponse
	/** Checked repeatedly while the stream is open. */
	credentials: Credentials
	filter: LiveFilter
	/**
	 * Resume after this position, a cursor or the id of an event; null: begin with the next event, as for a position that the
	 * log does not know. With `endsWithRun` an unknown position means the beginning of the run.
	 */
	after: string | null
	/** Whether the stream ends with the end of its run; default: it does not. Only for streams of one run. */
	endsWithRun?: boolean
}

/** A stream of one run that is about to start. It collects the run's events from its creation on. */
export interface RunStream {
	/**
	 * Sends all collected events, then new ones, and ends with the run. Otherwise like `Events.stream`. Call it once, or call
	 * `drop`.
	 */
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
	/** Null if there is nothing older. A page with fewer events than requested, even none, may have one. */
	next_cursor: Cursor | null
}

export interface Events {
	/**
	 * Turns a response into an event stream. Settles once it is open; it ends when its client leaves, its caller loses its
	 * authority or this plugin stops. Throws `unavailable` if too many streams are open.
	 */
	stream(request: StreamRequest): Promise<void>
	/**
	 * Collects the events of a run before it starts, so that its stream misses none, including the pieces of its first answer.
	 * Throws `unavailable` if too many streams are open.
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
