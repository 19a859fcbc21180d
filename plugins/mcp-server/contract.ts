import type { Credentials } from '../auth/contract.ts'

export interface McpServerSettings {
	/** Sessions that may be open at the same time; one caller may have half of them. */
	max_sessions: number
	/** Seconds without a request, an open stream or a running call, after which a session ends. */
	idle_timeout_s: number
	/** Seconds for which a call waits for its run; then it returns the current state, and the run continues. */
	max_wait_s: number
	/** Seconds for which a client may read nothing while data waits for it, before its stream is closed. */
	stall_timeout_s: number
}

/** One HTTP request to /mcp, past authentication. */
export interface McpRequest {
	method: 'GET' | 'POST' | 'DELETE'
	/** Node's: lower-case names. */
	headers: Readonly<Record<string, string | string[] | undefined>>
	/** The parsed JSON; undefined if there is none. */
	body: unknown
	credentials: Credentials
}

export interface McpAnswer {
	/** Its body may be an event stream that stays open. */
	response: Response
	/** Call this once, when the body has been sent or is no longer read. */
	closed(): void
}

export interface McpServer {
	/**
	 * Throws `not_found` for a session that does not exist or has another owner; `invalid_request`,
	 * `payload_too_large`, `rate_limited`, or `unavailable` if there is no room for another session.
	 */
	handle(request: McpRequest): Promise<McpAnswer>
	/** Sessions that are open. */
	readonly size: number
}

declare module '../../core/plugin.ts' {
	interface Services {
		'mcp-server': McpServer
	}
}

declare module '../../config/types.ts' {
	interface Config {
		'mcp-server': McpServerSettings
	}
}
