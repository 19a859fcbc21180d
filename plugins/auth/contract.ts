import type { IncomingMessage, ServerResponse } from 'node:http'
import type { ResponseObject, ResponseToolkit } from '@hapi/hapi'
import type { Fault } from '../../core/errors.ts'
import type { Actor } from '../../core/util/context.ts'
import type { Payer } from '../usage/contract.ts'
import type { CallerLimits } from './limits.ts'
import type { Claims, OidcRule, OidcSettings } from './oidc/contract.ts'

/** Who is calling: `request.auth.credentials` in a handler. */
export interface Credentials {
	/** The token that was presented, or the caller of the identity provider; null for a local caller without one. */
	token_id: string | null
	/** What the caller may do. `*` stands for everything. */
	scope: string[]
	/** Patterns of names: this caller cannot see other agents, and its `scope` never contains `*`. Absent: all agents. */
	agents?: readonly string[]
	/** Who it is, for `payload.actor` of the events that it causes. */
	actor: Actor
	/** Of a token of the identity provider. */
	claims?: Claims
	/** Those that matched these claims. */
	rules?: readonly OidcRule[]
	/** Of a browser that has signed in. */
	session?: string
	/** Daily limits of its runs. */
	payer?: Payer
	/** Absent: no limit of its own. */
	requests_per_minute?: number
	/** Streams that it may have open at the same time; absent: no limit of its own. */
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
	/** The agents that it is for, as patterns of their names with `*`. Absent: all. */
	agents?: string[]
	/** Its name for people. */
	label?: string
	limits?: CallerLimits
	status: TokenStatus
	/** ISO 8601; null if it never expires. */
	expires_at: string | null
	created_at: string
}

/** The response to its creation: the only place that ever contains the text of a token. */
export interface NewToken extends Omit<Token, 'status'> {
	/** `svc_` and 43 characters of URL-safe base64: 256 random bits. */
	token: string
}

export type TokenInput = Pick<Token, 'scopes' | 'agents' | 'label' | 'limits' | 'expires_at'>

export interface Tokens {
	/**
	 * Ends the bootstrap permanently, whoever creates the token. `mustBeFirst`: throws `unauthorized` if any token was ever
	 * created; of many concurrent calls exactly one succeeds. Throws `conflict` if the table is full.
	 */
	create(input: TokenInput, mustBeFirst?: boolean): Promise<NewToken>
	/** Oldest first. */
	list(): Promise<Token[]>
	/** Effective when it settles. May be repeated. Throws `not_found`. */
	revoke(id: string): Promise<void>
	/** The token of this text, whatever its status. */
	find(text: string): Promise<Token | undefined>
	get(id: string): Promise<Token | undefined>
	/** True as long as no token was ever created; revoked and expired ones count. */
	noneYet(): Promise<boolean>
}

/** What a request needs to be accepted. */
export interface Needs {
	/** One of these is enough. Absent: any caller. */
	scopes?: readonly string[]
	/** As long as no token was ever created, a caller without one is accepted by the rules of the bootstrap. */
	bootstrap?: boolean
	/** It concerns the whole gateway: a token for some agents is not enough. */
	wholeGateway?: boolean
	/** A local caller needs no token here, whatever the mode. */
	local?: boolean
	/**
	 * Whether a GET changes something, which makes the rule for local callers stricter. Absent: yes, unless one of `scopes` is
	 * for reading (`agents:read`). Other methods always change something.
	 */
	changes?: boolean
}

/** A request that waits or stays open. */
export interface OpenRequest {
	readonly credentials: Credentials
	/** Ends the request. */
	end(why: Fault): void
	/** Called twice a second; `now` as in `performance.now`. */
	beat?(now: number): void
}

export interface OpenRequestsOptions {
	/** How many there may be at the same time. Absent: their owner limits them. */
	limit?: number
	/** Such as `WebSockets are open`. */
	what: string
	/** They count toward the limit that a caller has for `streams`. */
	areStreams?: true
}

/** Requests that wait or stay open. Limits how many there are, and ends each when its caller loses its authority. */
export interface OpenRequests<One extends OpenRequest> extends Iterable<One> {
	readonly size: number
	/**
	 * Throws `unavailable` if the limit is reached, and `rate_limited` if the limit of this caller is reached, or its share, which
	 * leaves room for others. `taken`: how many places are taken, if the owner counts more than those that have entered.
	 */
	mustHaveRoom(caller: Credentials, taken?: number): void
	/** Throws as `mustHaveRoom`. */
	enter(one: One): void
	/** False if it has already left. */
	leave(one: One): boolean
	/** Ends all of them, each with a separate `unavailable`. Settles once they have left. */
	end(why: string): Promise<void>
}

/** A request whose caller waits for one answer. */
export interface WaitingRequest {
	open: OpenRequests<OpenRequest>
	credentials: Credentials
	/** Not begun yet. */
	response: ServerResponse
}

export interface StreamSettings {
	/** Seconds without an event after which the client gets a comment, for proxies that cut idle connections. */
	heartbeat_s: number
	/** Seconds for which the client may read nothing while data waits for it, before it is disconnected. */
	stall_timeout_s: number
}

export interface BegunStream {
	/** Whole events, which come first. */
	first: string
	/** Whole events, after which the stream ends. A rejection ends it abruptly. */
	last: Promise<string>
}

export interface Auth {
	readonly tokens: Tokens
	readonly auth_mode: AuthSettings['auth_mode']
	/** Of the identity provider whose tokens are accepted; null: there is none. */
	readonly issuer: string | null
	/** What clients ask it for: the scopes that the rules of `auth.oidc` want in a token. */
	readonly issuerScopes: readonly string[]
	/** Origins whose pages may use the API. */
	readonly cors_origins: AuthSettings['cors_origins']
	/**
	 * Whether this caller is still valid. False for a token that was revoked or has expired, for a caller of the identity provider
	 * whose rules were changed, and for a local caller once auth_mode is token. For connections that stay open longer than one request.
	 */
	check(credentials: Credentials): Promise<boolean>
	/** A table of open requests, which outlives this instance: each ends within a second after `check` refuses its caller. */
	openRequests<One extends OpenRequest>(options: OpenRequestsOptions): OpenRequests<One>
	/** Does `work`; `signal` aborts when the client leaves or must leave. Throws what `work` and `open.enter` throw. */
	answerWhole<T>(client: WaitingRequest, work: (signal: AbortSignal) => Promise<T>): Promise<T>
	/**
	 * Streams what `begin` writes, as Server-Sent Events: each call makes whole events, after the first ones. A client with more
	 * than 1 MiB of unread data is disconnected. The response belongs to the stream from now on, unless this throws. Settles
	 * once the stream is open, or its client has left: then nothing is begun. Throws what `begin` and `open.enter` throw.
	 */
	answerStream(
		client: WaitingRequest,
		settings: StreamSettings,
		begin: (signal: AbortSignal, write: (events: () => string) => void) => Promise<BegunStream>,
	): Promise<void>
	/** A page with one paragraph, for browsers that return from a login. `next`: a path that the browser opens at once. */
	loginPage(h: ResponseToolkit, code: number, about: { title: string; text: string; next?: string }): ResponseObject
	/**
	 * The caller of this request, which is about `agent` if that is given; for requests outside of hapi routes (WebSocket
	 * upgrades), since routes have their `auth`. Throws `invalid_request` (not exactly one Host), `unauthorized`, `forbidden`
	 * (names the scope) or `rate_limited`.
	 */
	authenticate(request: IncomingMessage, needs?: Needs, agent?: string): Promise<Credentials>
	/**
	 * Whether one of these scopes permits this caller something for the whole gateway. For routes that answer every caller, and
	 * some callers in more detail. Does not throw: an invalid token counts as a failed attempt, and the result is false.
	 */
	permits(request: IncomingMessage, scopes: readonly string[]): Promise<boolean>
}

export interface AuthSettings {
	auth_mode: 'loopback' | 'token'
	/** Host names under which local clients may call, beyond localhost and the loopback addresses; lower case. */
	allowed_hosts: readonly string[]
	/** Origins whose pages may read answers, as an `Origin` header writes them. */
	cors_origins: readonly string[]
	/** The company's identity provider; null: none. */
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
