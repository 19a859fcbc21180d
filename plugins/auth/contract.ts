import type { IncomingMessage } from 'node:http'

/** Who is calling: `request.auth.credentials` in a handler. */
export interface Credentials {
	/** The token that was presented; null for a local caller without one. */
	token_id: string | null
	/** What the caller may do. `*` stands for everything. */
	scope: string[]
	/** True where the request counts as local, with a token or without. */
	local: boolean
	/** Nobody in particular, who may create the very first token and nothing else. */
	bootstrap?: true
}

export type TokenStatus = 'active' | 'revoked' | 'expired'

/** What clients see of a token; never its text. */
export interface Token {
	/** A UUIDv7. */
	id: string
	scopes: string[]
	status: TokenStatus
	/** ISO 8601; null where it never expires. */
	expires_at: string | null
	created_at: string
}

/** The answer to its creation: the only place where the text of a token ever shows. */
export interface NewToken extends Omit<Token, 'status'> {
	/** `svc_` and 43 characters of URL-safe base64: 256 random bits. */
	token: string
}

export interface Tokens {
	/**
	 * Ends the bootstrap for ever, whoever creates it. `mustBeFirst`: throws `unauthorized` where any token was ever
	 * created; of many at once exactly one gets through. Throws `conflict` where the table is full.
	 */
	create(input: { scopes: string[]; expires_at: string | null }, mustBeFirst?: boolean): Promise<NewToken>
	/** Oldest first. */
	list(): Promise<Token[]>
	/** In force when it settles. May be repeated. Throws `not_found`. */
	revoke(id: string): Promise<void>
	/** The token of this text, whatever its status. */
	find(text: string): Promise<Token | undefined>
	get(id: string): Promise<Token | undefined>
	/** True as long as no token was ever created; revoked and expired ones count. */
	noneYet(): Promise<boolean>
}

/** What a request needs to be let in. */
export interface Needs {
	/** One of these. Absent: a caller is enough. */
	scopes?: readonly string[]
	/** As long as no token was ever created, a caller without one is let in by the rules of the bootstrap. */
	bootstrap?: boolean
	/** A local caller needs no token here, whatever the mode. */
	local?: boolean
}

export interface Auth {
	readonly tokens: Tokens
	/**
	 * Is this caller still good now? No for a token that was revoked or has expired, and for a local caller once
	 * auth_mode is token. For what stays open longer than one request.
	 */
	check(credentials: Credentials): Promise<boolean>
	/**
	 * Who sends this request; for what is no hapi route (WebSocket upgrades), since routes have their `auth`.
	 * Throws `invalid_request` (not exactly one Host), `unauthorized`, `forbidden` (names the scope) or `rate_limited`.
	 */
	authenticate(request: IncomingMessage, needs?: Needs): Promise<Credentials>
}

export interface AuthSettings {
	auth_mode: 'loopback' | 'token'
	/** Host names under which local clients may call, beyond localhost and the loopback addresses; lower case. */
	allowed_hosts: readonly string[]
	/** Where the gateway listens. */
	host: string
}

declare module '../../core/plugin.ts' {
	interface Services {
		auth: Auth
	}
}

declare module '@hapi/hapi' {
	interface ReqRefDefaults {
		AuthCredentialsExtra: Credentials & Record<string, unknown>
	}
	interface PluginSpecificConfiguration {
		/**
		 * Who is taken without a token: with `bootstrap` everybody, as long as no token was ever created; with `local` local
		 * callers, also in token mode.
		 */
		auth?: { bootstrap?: true; local?: true }
	}
}
