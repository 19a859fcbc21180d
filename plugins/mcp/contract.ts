import type { AgentRef } from '../../core/plugin.ts'

export type McpTransport = 'stdio' | 'sse' | 'http'

/**
 * - `connecting`: for the first time since it was added, switched on or restarted, or since the gateway started
 * - `reconnecting`: the connection was lost or failed, and is retried with increasing delays
 * - `error`: it failed too often in a row, or in a way that a retry cannot fix; `last_error` names what to change
 * - `needs_login`: a person must sign in; until then it is not retried
 * - `disabled`: switched off
 */
export type McpStatus = 'connecting' | 'connected' | 'reconnecting' | 'needs_login' | 'error' | 'disabled'

/** A server as clients see it. */
export interface McpServer {
	id: string
	name: string
	transport: McpTransport
	status: McpStatus
	/** Changed tools that wait to be accepted; absent if there are none. */
	held_tools?: number
}

/** A server that was just added; with `status_detail` if it is not connected yet. */
export type AddedMcpServer = McpServer & Partial<Pick<McpServerDetails, 'status_detail'>>

/** A value of `env` or `headers`: text, in which `{{secret:NAME}}` is replaced by a secret, or a reference to a secret. */
export type McpValue = string | { secret: string }

/** How the gateway signs in to a server at an address. Absent: by OAuth if the server's first 401 leads to it. */
export interface McpAuth {
	/** `none`: never; `oauth`: even if the server's documents do not mention it. */
	type: 'none' | 'oauth'
	/** `client_credentials`: the gateway itself, without a person. Default `authorization_code`. */
	grant?: 'authorization_code' | 'client_credentials'
	/** A client that was registered beforehand, or the address of a client ID metadata document. */
	client_id?: string
	client_secret?: { secret: string }
	/** PEM (PKCS #8), RSA or EC, in place of `client_secret`. */
	private_key?: { secret: string }
	/** The scopes to request if the server does not specify any. Default: all scopes that it lists. */
	scopes?: string[]
	/** A call of a tool pauses its run until somebody has signed in. */
	wait?: boolean
}

/** The gateway's tokens for a server, without their text. */
export interface McpLogin {
	/** The authorization server. */
	issuer: string
	scopes: string[]
	/** Of the access token; null if the authorization server does not specify it. */
	expires_at: string | null
	/** Null: the gateway signed in itself. */
	signed_in_at: string | null
	/** Whether it is renewed without a person. */
	renewable: boolean
}

export interface StartedLogin {
	/** For a person's browser. */
	url: string
	expires_at: string
}

/** The request for a new server. Its fields depend on the transport. */
export interface NewMcpServer {
	name: string
	transport: McpTransport
	/** stdio */
	command?: string
	args?: string[]
	env?: Record<string, McpValue>
	/** sse and http */
	url?: string
	headers?: Record<string, McpValue>
	auth?: McpAuth
	/** It may send its own requests to the agent's model (sampling). Default: false. */
	sampling?: boolean
	/** Folders in which it should work, as `file://` addresses. The server decides whether it respects them. Default: none. */
	roots?: string[]
}

/** The permissions, besides changing agents, of the caller who adds a server. */
export interface McpPermissions {
	/** May start any program, reach any address, and allow sampling and roots: has the scope `*`. */
	trusted: boolean
	/** May have the values of secrets sent to the server: has the scope `vault:write` or `*`. */
	secrets: boolean
}

/** A tool as its server describes it, and whether agents get it. */
export interface McpTool {
	/** Its name on the server. */
	name: string
	/** The name by which agents call it: `mcp__<server>__<tool>`. */
	tool: string
	description: string
	input_schema: Record<string, unknown>
	annotations: Record<string, unknown>
	/** sha256 over everything that a model or an operator relies on: what `accept` refers to. */
	digest: string
	/** Its definition differs from the accepted one; agents do not get it until it is accepted. */
	held: boolean
	/** The accepted definition of a tool that is held. */
	accepted?: Pick<McpTool, 'description' | 'input_schema' | 'annotations'>
}

/** A server in full, for operators. */
export interface McpServerDetails extends McpServer {
	command?: string
	args?: string[]
	url?: string
	/** By name: the secret that the value comes from, or null. Values are never shown. */
	env?: Record<string, { secret: string } | null>
	headers?: Record<string, { secret: string } | null>
	/** As in the request that added it. */
	auth?: McpAuth
	/** Null: nobody has signed in. Absent: it is a program. */
	login?: McpLogin | null
	sampling: boolean
	roots: string[]
	/** One sentence about the current connection. */
	status_detail: string
	last_error: { at: string; message: string } | null
	/** Attempts and connections that failed in a row. */
	failures: number
	/** The server's own description; null before the first connection. */
	server: { name: string; version: string; title?: string } | null
	protocol_version: string | null
	instructions: string | null
	connected_at: string | null
	/** Of its process, while it runs. */
	pid: number | null
	/** The end of what its process wrote to standard error, at most 64 KiB. */
	stderr: string
	tools: McpTool[]
	/** One sentence for each listed tool that is not offered. */
	not_offered: string[]
	created_at: string
}

export interface McpSettings {
	/**
	 * Complete command lines. Leading items such as `GITHUB_TOKEN=` name the environment variables that a caller may set
	 * with that command.
	 */
	allowed_commands: readonly (readonly string[])[]
	/** `host` (any port) or `host:port`. */
	allowed_hosts: readonly string[]
	max_per_agent: number
	call_timeout_s: number
	max_call_s: number
	/** Requests for sampling of all servers in one run. */
	max_samplings_per_run: number
	/** Tokens of one sampled answer. */
	max_sampling_tokens: number
}

export interface McpServers {
	/** In the order in which they were added. */
	list(agent: AgentRef): Promise<McpServer[]>
	/** The number of servers of all agents by status, without waiting. */
	statuses(): ReadonlyMap<McpStatus, number>
	/** Throws `not_found`. */
	get(agent: AgentRef, id: string): Promise<McpServerDetails>
	/**
	 * Adds a server and waits a few seconds for its first connection. Throws `forbidden` (naming the scope or setting) for
	 * what needs more than the given permissions, `already_exists`, `conflict` (too many), `invalid_request`.
	 */
	add(agent: AgentRef, wanted: NewMcpServer, permissions: McpPermissions): Promise<AddedMcpServer>
	/** Its process or session has ended when this settles. Throws `not_found`. */
	remove(agent: AgentRef, id: string): Promise<void>
	/** Switches it on or off. Throws `not_found`. */
	enable(agent: AgentRef, id: string, enabled: boolean): Promise<McpServer>
	/** Reconnects. Throws `not_found`, and `conflict` if it is switched off. */
	restart(agent: AgentRef, id: string): Promise<McpServer>
	/**
	 * Accepts changed definitions of tools: all that are held, or those with the given digests. Throws `not_found`, and
	 * `digest_mismatch` if no held tool has a digest.
	 */
	accept(agent: AgentRef, id: string, digests?: readonly string[]): Promise<McpServerDetails>
	/**
	 * Begins a login by OAuth, which replaces an earlier one. `browser`: the value of a cookie that the browser must send to
	 * complete the login; null: any browser can. Throws `not_found`, `conflict` if the server needs no login by a person, and
	 * `mcp_failed` if the authorization server cannot be used.
	 */
	login(agent: AgentRef, id: string, browser: string | null): Promise<StartedLogin>
	/**
	 * Completes a login with the address to which the browser was redirected. Throws `invalid_request`, `forbidden`,
	 * `mcp_failed`.
	 */
	completeLogin(
		returned: URL,
		browser: string | undefined,
		of?: { agent: AgentRef; id: string },
	): Promise<{ agent: string; server: McpServer }>
	/** Revokes and deletes the tokens, and reconnects. Throws `not_found`. */
	logout(agent: AgentRef, id: string): Promise<McpServer>
}

declare module '../../core/plugin.ts' {
	interface Services {
		mcp: McpServers
	}
}

export type McpCode = 'mcp_unavailable' | 'mcp_failed' | 'mcp_timeout'

declare module '../../core/errors.ts' {
	interface ErrorCodes extends Record<McpCode, true> {}
}

declare module '../../config/types.ts' {
	interface Config {
		mcp: McpSettings
	}
}
