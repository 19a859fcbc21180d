import type { ServerResponse } from 'node:http'
import type { LiveFilter } from '../../core/events.ts'
import type { Cursor, EventEnvelope, LogFilter } from '../../core/store/ports.ts'
import type { Credentials } from '../auth/contract.ts'

export interface EventSettings {
	/** Events older than this are forgotten, but those of runs that have not ended. */
	retention_days: number
	/** Streams open at the same time; the next one is answered with 503. */
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
	/** Go on behind this position; null: begin with what happens next. */
	after: Cursor | null
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
	 * this plugin. Throws `invalid_request` for a position that is none, `unavailable` where too many streams are open.
	 */
	stream(request: StreamRequest): Promise<void>
	/** How many streams are open. */
	streams(): number
	/** Throws `invalid_request` for a cursor that is none. */
	audit(request: AuditRequest): Promise<AuditPage>
	/** Forgets what is older than the retention allows. Answers how many events went. */
	prune(): Promise<number>
}

declare module '../../core/plugin.ts' {
	interface Services {
		events: Events
	}
}
