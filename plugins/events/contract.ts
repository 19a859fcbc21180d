import type { ServerResponse } from 'node:http'
import type { LiveFilter } from '../../core/events/event-bus.ts'
import type { Cursor, EventEnvelope, LogFilter } from '../../core/store/ports.ts'
import type { Credentials, StreamSettings } from '../auth/contract.ts'

export interface EventSettings extends StreamSettings {
	/** Events older than this are deleted, except those of runs that have not ended. */
	retention_days: number
	/** Maximum number of open streams; the next one gets 503. */
	max_streams: number
}

export interface StreamRequest {
	/** Without headers or a body yet. The stream takes it over. */
	response: ServerResponse
	/** Checked repeatedly while the stream is open. */
	credentials: Credentials
	filter: LiveFilter
	/**
	 * Resume after this position: a cursor or an event's id. Null: begin with the next event. An unknown position has the same
	 * effect as null, but with `endsWithRun` the stream then begins with the run.
	 */
	after: string | null
	/** Whether the stream ends with its run; default false. Only for streams of one run. */
	endsWithRun?: boolean
}

/** A stream of one run that has not started yet. Collects the run's events until it is opened. */
export interface RunStream {
	/** Sends the collected events, then new ones, and ends with the run. Otherwise as `Events.stream`. Call it once, or `drop`. */
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
	 * Turns a response into an event stream. Resolves once it is open. The stream ends when the client disconnects, the caller
	 * loses its authority or this plugin stops. Throws `unavailable` if too many streams are open.
	 */
	stream(request: StreamRequest): Promise<void>
	/**
	 * Collects the events of a run that has not started yet, so that its stream misses none, not even the first `model.stream`.
	 * Throws `unavailable` if too many streams are open.
	 */
	ofRun(run_id: string, credentials: Credentials): RunStream
	/** The number of open streams. */
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
