import type { Credentials } from '../auth/contract.ts'

export interface McpServerSettings {
	/** Limit of open sessions. One caller may have half of them. */
	max_sessions: number
	/** A session ends after this many seconds without a request, an open stream or a call in progress. */
	idle_timeout_s: number
	/** Seconds for which a call waits for its run. Then it returns the current state, and the run continues. */
	max_wait_s: number
	/** A stream is closed if its client reads nothing for this many seconds while data is pending. */
	stall_timeout_s: number
}

/** One authenticated HTTP request to /mcp. */
export interface McpRequest {
	method: 'GET' | 'POST' | 'DELETE'
	/** From Node, with lower-case names. */
	headers: Readonly<Record<string, string | string[] | undefined>>
	/** The parsed JSON; undefined if there is none. */
	body: unknown
	credentials: Credentials
}

export interface McpAnswer {
	/** The body may be an event stream that stays open. */
	response: Response
	/** Call this once, after the body was sent or its reader stopped. */
	closed(): void
}

declare module '../../config/types.ts' {
	interface Config {
		'mcp-server': McpServerSettings
	}
}
