import type { IncomingMessage, ServerResponse } from 'node:http'
import type { ResponseObject, ResponseToolkit } from '@hapi/hapi'
import type { Fault } from '../../core/errors.ts'
import type { Actor } from '../../core/util/context.ts'
import type { Payer } from '../usage/contract.ts'
import type { CallerLimits } from './limits.ts'
import type { Claims, OidcRule, OidcSettings } from './oidc/contract.ts'

/** Who is calling: `request.auth.credentials` in a handler. */
export interface Credentials {
	/** Id of the token, or `oidc:` and a hash for a caller of the identity provider; null for a caller without a token. */
	token_id: string | null
	/** What the caller may do. `*`: everything. */
	scope: string[]
	/** Patterns of agent names. The caller cannot see other agents, and its `scope` never contains `*`. Absent: all agents. */
	agents?: readonly string[]
	/** `payload.actor` of the events that the caller causes. */
	actor: Actor
	/** The claims of a token of the identity provider, or of a sign-in. */
	claims?: Claims
	/** The rules that match `claims`. */
	rules?: readonly OidcRule[]
	/** The session's id, of a browser that has signed in. */
	session?: string
	/** Daily limits of the caller's runs. */
	payer?: Payer
	/** Absent: no limit for this caller. */
	requests_per_minute?: number
	/** Streams that the caller may have open at the same time. Absent: no limit for this caller. */
	streams?: number
	/** True if the request counts as local, with or without a token. */
	local: boolean
	/** An anonymous caller, who may create the very first token and nothing else. */
	bootstrap?: true
}

export type TokenStatus = 'active' | 'revoked' | 'expired'

/** A token as clients see it, without its text. */
export interface Token {
	/** A UUIDv7. */
	id: string
	scopes: string[]
	/** Patterns of the names of the agents that the token is for, with `*`. Absent: all. */
	agents?: string[]
	/** A name that people recognize. */
	label?: string
	limits?: CallerLimits
	status: TokenStatus
	/** ISO 8601; null if it never expires. */
	expires_at: string | null
	created_at: string
}

/** A created token. No other response contains the text of a token. */
export interface NewToken extends Omit<Token, 'status'> {
	/** `svc_` and 43 characters of URL-safe base64: 256 random bits. */
	token: string
}

export type TokenInput = Pick<Token, 'scopes' | 'agents' | 'label' | 'limits' | 'expires_at'>

export interface Tokens {
	/**
	 * Creates a token. After the first one, the bootstrap is over permanently. `mustBeFirst`: throws `unauthorized` if any token was
	 * ever created; of many concurrent calls exactly one succeeds. Throws `conflict` if there are 10,000 tokens.
	 */
	create(input: TokenInput, mustBeFirst?: boolean): Promise<NewToken>
	/** Oldest first. */
	list(): Promise<Token[]>
	/** In force once it resolves. Idempotent. Throws `not_found`. */
	revoke(id: string): Promise<void>
	/** The token with this text, in any status. */
	find(text: string): Promise<Token | undefined>
	get(id: string): Promise<Token | undefined>
	/** True as long as no token was ever created. Revoked and expired tokens count as created. */
	noneYet(): Promise<boolean>
}

/** What a request needs to be accepted. */
export interface Needs {
	/** The caller needs one of these. Absent: none. */
	scopes?: readonly string[]
	/** As long as no token was ever created, a caller without one is accepted if it is local or sends the set-up code. */
	bootstrap?: boolean
	/** The request concerns the whole gateway: a token for some agents is not enough. */
	wholeGateway?: boolean
	/** A local caller needs no token, also in token mode. */
	local?: boolean
	/**
	 * Whether a GET changes something, which makes the rule for local callers stricter. Absent: yes, unless one of `scopes` is
	 * for reading (`agents:read`). Other methods always change something.
	 */
	changes?: boolean
}

/** A stream, or a request that waits for its answer. */
export interface OpenRequest {
	readonly credentials: Credentials
	/** Ends the request. */
	end(why: Fault): void
	/** Called twice a second. `now`: of `performance.now`. */
	beat?(now: number): void
}

export interface OpenRequestsOptions {
	/** Maximum number at the same time. Absent: the owner limits them. */
	limit?: number
	/** For messages, such as `WebSockets are open`. */
	what: string
	/** They count toward the `streams` limit of their callers. */
	areStreams?: true
}

/** Limits how many requests are open at the same time, and ends each when its caller loses its authority. */
export interface OpenRequests<One extends OpenRequest> extends Iterable<One> {
	readonly size: number
	/**
	 * Throws `unavailable` if the limit is reached, and `rate_limited` if this caller's limit is reached, or its share, which
	 * leaves room for others. `taken`: the places in use, if the owner counts more than those that have entered.
	 */
	mustHaveRoom(caller: Credentials, taken?: number): void
	/** Throws as `mustHaveRoom`. */
	enter(request: One): void
	/** False if the request has already left. */
	leave(request: One): boolean
	/** Ends all open requests with `unavailable`. Resolves once they have left. */
	end(why: string): Promise<void>
}

/** A request whose caller waits for one answer. */
export interface WaitingRequest {
	open: OpenRequests<OpenRequest>
	credentials: Credentials
	/** Without headers or a body yet. */
	response: ServerResponse
}

export interface StreamSettings {
	/** Seconds without an event after which the client gets a comment, for proxies that cut idle connections. */
	heartbeat_s: number
	/** Seconds for which the client may read nothing while data waits for it, before it is disconnected. */
	stall_timeout_s: number
}

export interface StartedStream {
	/** The first events, complete. */
	first: string
	/** The last events, complete. A rejection cuts the connection. */
	last: Promise<string>
}

export interface Auth {
	readonly tokens: Tokens
	readonly auth_mode: AuthSettings['auth_mode']
	/** The identity provider whose tokens are accepted; null: none. */
	readonly issuer: string | null
	/** The scopes that clients request from the issuer, so that rules of `auth.oidc` for scopes match. */
	readonly issuerScopes: readonly string[]
	/** Origins whose pages may use the API. */
	readonly cors_origins: AuthSettings['cors_origins']
	/**
	 * Whether this caller is still valid. False for a token that was revoked or has expired, for a caller of the identity provider
	 * whose rules were changed, and for a local caller once auth_mode is token. For requests that stay open.
	 */
	check(credentials: Credentials): Promise<boolean>
	/** Makes a table that outlives this instance. Each request ends within a second after `check` refuses its caller. */
	openRequests<One extends OpenRequest>(options: OpenRequestsOptions): OpenRequests<One>
	/**
	 * Runs `work` for a client that waits. `signal` aborts when the client disconnects or loses its authority. Throws what `work`
	 * and `open.enter` throw.
	 */
	answerWhole<T>(client: WaitingRequest, work: (signal: AbortSignal) => Promise<T>): Promise<T>
	/**
	 * Streams Server-Sent Events. `write` of `begin` appends complete events, which follow `first`. A client with more than 1 MiB
	 * of unread data is disconnected. Takes over the response unless it throws. Resolves once the stream is open, or its client
	 * has disconnected: then `begin` may never be called. Throws what `begin` and `open.enter` throw.
	 */
	answerStream(
		client: WaitingRequest,
		settings: StreamSettings,
		begin: (signal: AbortSignal, write: (events: () => string) => void) => Promise<StartedStream>,
	): Promise<void>
	/** A page with one paragraph, for browsers that return from a login. `next`: a path to which the page redirects. */
	loginPage(h: ResponseToolkit, code: number, about: { title: string; text: string; next?: string }): ResponseObject
	/**
	 * Authenticates a request outside of hapi's routes, such as a WebSocket upgrade. `agent`: the agent that the request is about.
	 * Throws `invalid_request` (not exactly one Host), `unauthorized`, `forbidden` (names the scope) or `rate_limited`.
	 */
	authenticate(request: IncomingMessage, needs?: Needs, agent?: string): Promise<Credentials>
	/**
	 * Whether the caller has one of these scopes for the whole gateway. For routes that answer every caller, but give details to
	 * some only. For an invalid token the result is false; it counts as a failed attempt.
	 */
	permits(request: IncomingMessage, scopes: readonly string[]): Promise<boolean>
}

export interface AuthSettings {
	auth_mode: 'loopback' | 'token'
	/** Host names under which local clients may call, beyond localhost and the loopback addresses; lower case. */
	allowed_hosts: readonly string[]
	/** Origins whose pages may read answers, as an `Origin` header writes them. */
	cors_origins: readonly string[]
	/** The identity provider; null: none. */
	oidc: OidcSettings | null
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
		 * Which callers need no token: with `bootstrap` all callers, as long as no token was ever created; with `local` local
		 * callers, also in token mode. A GET whose scope is not for reading (`runs:write`, or `*` alone) counts as a change, so a
		 * request from an address typed in a browser is not local; set `changes: false` if the route only reads.
		 *
		 * `agents: 'checked'`: the handler hides all other agents from a caller whose token is for some agents (`reaches` in
		 * plugins/shared/agent-limit.ts). Without it, a route outside `/v1/agents/{name}` is refused to such callers.
		 */
		auth?: { bootstrap?: true; local?: true; changes?: boolean; agents?: 'checked' }
	}
}

declare module '../../config/types.ts' {
	interface Config {
		auth_mode: AuthSettings['auth_mode']
		auth: Pick<AuthSettings, 'oidc'>
	}
	interface ServerSettings {
		allowed_hosts: AuthSettings['allowed_hosts']
		cors_origins: AuthSettings['cors_origins']
	}
}
