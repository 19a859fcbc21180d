/**
 * The OAuth login to one server at an address: adds the access token to each request, renews it before it expires, and records
 * when a person must sign in.
 *
 * Only one caller at a time renews tokens, however many requests need it. If a crash loses a new refresh token, the authorization
 * server refuses the old one, and a person must sign in again.
 */
import { hash, randomBytes } from 'node:crypto'
import type { FetchLike } from '@modelcontextprotocol/sdk/shared/transport.js'
import { Fault, isFault, messageOf } from '../../../core/errors.ts'
import type { GuardedFetcher, GuardedInit } from '../../../core/fetch/guarded-fetch.ts'
import type { AgentRef, Context } from '../../../core/plugin.ts'
import { defined } from '../../../core/util/defined.ts'
import { now } from '../../../core/util/ids.ts'
import { openSerialQueue } from '../../../core/util/serial-queue.ts'
import type { McpLogin, McpSettings, StartedLogin } from '../contract.ts'
import { serverKey } from '../records.ts'
import type { McpRecord } from '../records.ts'
import { readSecret } from '../values.ts'
import { clientDocument, redirectAddress } from './client.ts'
import { loginFetch } from './fetch.ts'
import { isEqual, storedLogins } from './stored-logins.ts'
import type { StoredLogin, StoredLogins } from './stored-logins.ts'
import type { AuthClient, Challenge, Issuer, Tokens } from './oauth.ts'

export type LoginServices = Pick<
	Context<McpSettings>,
	'store' | 'use' | 'find' | 'emit' | 'gateway' | 'config' | 'log' | 'redactor'
>

const PENDING_MS = 10 * 60_000
/** After this many refusals because of missing scopes, each after a login, another login does not help. */
const REFUSALS = 3
/** Retries of one request, with other tokens. */
const RETRIES = 2
/** Limit of requests that wait for a token. */
const WAITING = 1024
const TEXT_LIMIT = 500

const oauth = () => import('./oauth.ts')

export class Login {
	readonly #record: McpRecord
	readonly #agent: AgentRef
	readonly #services: LoginServices
	readonly #server: URL
	readonly #fetch: FetchLike
	readonly #logins: StoredLogins
	readonly #queue = openSerialQueue(WAITING, () => new Fault('mcp_unavailable', `${WAITING} requests wait for a login`))
	#stored: Promise<StoredLogin | undefined> | undefined
	#loginReason: string | null = null
	/** The server's latest challenge. */
	#challenge: Challenge = {}
	/** Values to redact everywhere; the newest first. */
	#secrets: readonly string[] = []

	constructor(record: McpRecord, agent: AgentRef, services: LoginServices) {
		this.#record = record
		this.#agent = agent
		this.#services = services
		this.#server = new URL(record.url ?? '')
		this.#fetch = loginFetch(this.#server, record.trusted, agent, services.config)
		this.#logins = storedLogins(agent, { id: record.id, server: serverKey(agent, record.id) }, services)
	}

	/** Why a person must sign in, as a sentence; null if nobody must, as far as known. */
	get loginReason(): string | null {
		return this.#loginReason
	}

	/** Call this after a login. True if another instance of the plugin completed it: then the stored tokens are read again. */
	takeOver(): boolean {
		if (this.#loginReason === null) return false
		this.#loginReason = null
		this.#stored = undefined
		return true
	}

	/** Tokens and codes, to be redacted. */
	get secrets(): readonly string[] {
		return this.#secrets
	}

	/** Adds the token to requests to the server's origin, and renews it when the server refuses it. Other requests are not changed. */
	authorize(fetcher: GuardedFetcher): GuardedFetcher {
		const authorized = async (url: string | URL, init: GuardedInit = {}): Promise<Response> => {
			if (new URL(url).origin !== this.#server.origin) return fetcher(url, init)
			let token = await this.#token()
			for (let retries = 0; ; retries++) {
				const response = await fetcher(url, withToken(init, token))
				if (response.status !== 401 && response.status !== 403) return response
				const next = await this.#tokenAfterRefusal(response, token, retries === RETRIES)
				if (next === undefined) return response
				await response.body?.cancel()
				token = next
			}
		}
		return Object.assign(authorized, { [Symbol.asyncDispose]: () => fetcher[Symbol.asyncDispose]() })
	}

	/**
	 * Starts a login: `url` is for a person's browser. `browser`: the cookie that the browser must send to complete it; null: any
	 * browser can. Throws `conflict` if the server needs no login by a person, and `mcp_failed` if the authorization server cannot
	 * be used.
	 */
	async begin(browser: string | null): Promise<StartedLogin> {
		if (this.#signsInItself) throw this.#fault('conflict', 'signs in automatically (client_credentials)')
		const { authorizationUrl } = await oauth()
		const issuer = await this.#findIssuer()
		if (!issuer) throw this.#fault('conflict', 'does not ask for a login by OAuth')
		const scope = this.#scopeOf(issuer, await this.#read())
		const redirect = redirectAddress(this.#services.gateway)
		const client = (await this.#queue.run(() => this.#client(issuer, redirect, scope))).information
		const secret = randomBytes(32).toString('base64url')
		const state = `${this.#record.id}.${secret}`
		const { url, code_verifier } = await authorizationUrl(issuer, client, { redirect, scope, state })
		const expires_at = Date.now() + PENDING_MS
		await this.#logins.begin({
			issuer,
			client,
			redirect,
			code_verifier,
			...(scope !== undefined && { scope }),
			state: hash('sha256', secret),
			browser: browser === null ? null : hash('sha256', browser),
			expires_at,
		})
		return { url: url.href, expires_at: new Date(expires_at).toISOString() }
	}

	/**
	 * Completes the login with the answer's `state`. Each login can be completed once, even if that fails. `answer`: the parameters
	 * with which the authorization server redirected the browser; `browser`: the cookie of that browser. Throws `invalid_request`,
	 * `forbidden` or `mcp_failed`.
	 */
	async finish(answer: URLSearchParams, browser: string | undefined): Promise<void> {
		const { exchange, isSame } = await oauth()
		const [, secret = ''] = (answer.get('state') ?? '').split('.')
		const pending = await this.#logins.take(hash('sha256', secret))
		if (!pending) throw this.#fault('invalid_request', 'has no such login in progress; start another one')
		if (pending.expires_at < Date.now())
			throw this.#fault('invalid_request', 'was not signed in to within 10 minutes; start another login')
		if (pending.browser !== null && (browser === undefined || !isEqual(hash('sha256', browser), pending.browser)))
			throw this.#fault('forbidden', 'must be signed in to in the browser in which the login was started')
		const { issuer } = pending
		const expectedIss = issuer.metadata?.issuer ?? issuer.issuer
		const requiresIss =
			(issuer.metadata as Record<string, unknown> | undefined)?.authorization_response_iss_parameter_supported === true
		const iss = answer.get('iss')
		if (iss === null ? requiresIss : !isSame(iss, expectedIss))
			throw this.#fault('forbidden', 'got the answer of another authorization server; start another login')
		const code = answer.get('code')
		const error = answer.get('error')
		if (error !== null || code === null) {
			const why = [error ?? 'no code', answer.get('error_description') ?? ''].join(' ').trim().slice(0, TEXT_LIMIT)
			throw this.#fault('mcp_failed', `was not signed in to: its authorization server returned ${JSON.stringify(why)}`)
		}
		this.#hide(code, pending.code_verifier)
		const { code_verifier, redirect } = pending
		const client =
			this.#record.auth?.client_id === undefined
				? { information: pending.client }
				: await this.#client(issuer, redirect, pending.scope)
		const tokens = await this.#withFaults(exchange(issuer, client, { code, code_verifier, redirect }, this.#fetch))
		await this.#queue.run(async () => {
			const before = await this.#read()
			const { refusals = 0 } = before ?? {}
			const asked = defined({ scope: pending.scope })
			await this.#write({ ...before, issuer, tokens, ...asked, refusals, signed_in_at: now() })
		})
		this.#loginReason = null
		await this.#emit('mcp.logged_in', { issuer: issuer.issuer, scopes: scopesOf(tokens.scope ?? pending.scope) })
	}

	/** Revokes the tokens, if the authorization server supports that, and deletes them. */
	async logout(): Promise<void> {
		const { revoke } = await oauth()
		const stored = await this.#read()
		this.#loginReason = null
		if (!stored?.tokens) return this.#queue.run(() => this.#write(undefined))
		const { issuer, tokens } = stored
		const cannotRevoke = (error: unknown): undefined => {
			const about = { server: this.#record.name, reason: this.#redact(messageOf(error)) }
			this.#services.log.warn(about, 'tokens of an MCP server could not be revoked')
			return undefined
		}
		// The agent may no longer have the grant for the client's secret.
		const client = await this.#client(issuer, stored.redirect ?? '', stored.scope).catch(cannotRevoke)
		await this.#queue.run(() => this.#write(undefined))
		for (const token of [tokens.refresh_token, tokens.access_token])
			if (client && token !== undefined)
				await revoke(issuer, client.information, token, this.#fetch).catch(cannotRevoke)
		await this.#emit('mcp.logged_out', { issuer: issuer.issuer })
	}

	/** The login as clients see it, without tokens; null if there are no tokens. */
	async view(): Promise<McpLogin | null> {
		const stored = await this.#read()
		if (!stored?.tokens) return null
		const { expires_at } = stored.tokens
		return {
			issuer: stored.issuer.issuer,
			scopes: scopesOf(stored.tokens.scope ?? stored.scope),
			expires_at: expires_at === null ? null : new Date(expires_at).toISOString(),
			signed_in_at: stored.signed_in_at ?? null,
			renewable: this.#signsInItself || stored.tokens.refresh_token !== undefined,
		}
	}

	get #signsInItself(): boolean {
		return this.#record.auth?.grant === 'client_credentials'
	}

	/** The token for the next request; undefined if there is none. */
	async #token(): Promise<string | undefined> {
		const stored = await this.#read()
		if (!stored?.tokens || !isDue(stored.tokens)) return stored?.tokens?.access_token
		return this.#queue.run(async () => {
			const current = await this.#read()
			if (!current?.tokens || !isDue(current.tokens)) return current?.tokens?.access_token
			try {
				return (await this.#renew(current)) ?? current.tokens.access_token
			} catch (error) {
				// The authorization server may be down for a moment while the token is still valid.
				if ((current.tokens.expires_at ?? Infinity) > Date.now()) return current.tokens.access_token
				throw error
			}
		})
	}

	/** Another token for a retry of a refused request; undefined if a person must sign in, or if tokens were not the cause. */
	async #tokenAfterRefusal(response: Response, used: string | undefined, isLast: boolean): Promise<string | undefined> {
		const challenge = (await oauth()).challengeOf(response)
		const lacksScope = response.status === 403
		if (lacksScope && challenge.error !== 'insufficient_scope') return undefined
		return this.#queue.run(async () => {
			const stored = await this.#read()
			const current = stored?.tokens?.access_token
			if (!isLast && current !== undefined && current !== used) return current
			this.#challenge = challenge
			if (this.#signsInItself && !isLast) return this.#requestOwnToken(stored, lacksScope)
			if (!lacksScope && !isLast && stored?.tokens) {
				const renewed = await this.#renew(stored)
				if (renewed !== undefined) return renewed
			}
			await this.#requireLogin(stored, lacksScope)
			return undefined
		})
	}

	/** Renews the access token. Returns undefined if a person must sign in. */
	async #renew(stored: StoredLogin): Promise<string | undefined> {
		if (this.#signsInItself) return this.#requestOwnToken(stored, false)
		const { issuer, tokens, redirect, scope } = stored
		if (tokens?.refresh_token === undefined) return undefined
		const { refresh } = await oauth()
		const client = await this.#client(issuer, redirect ?? '', scope)
		const next = await this.#withFaults(refresh(issuer, client, tokens.refresh_token, this.#fetch))
		if (!next) return undefined
		await this.#write({ ...stored, tokens: { ...(tokens.scope !== undefined && { scope: tokens.scope }), ...next } })
		return next.access_token
	}

	/** Gets a token by the grant client_credentials. Returns undefined if the server does not use OAuth. */
	async #requestOwnToken(stored: StoredLogin | undefined, lacksScope: boolean): Promise<string | undefined> {
		const { ownTokens } = await oauth()
		const refusals = (stored?.refusals ?? 0) + (lacksScope ? 1 : 0)
		if (refusals >= REFUSALS) throw this.#missingScopes()
		const issuer = await this.#findIssuer()
		if (!issuer) return undefined
		const scope = this.#scopeOf(issuer, stored)
		const client = await this.#client(issuer, '', scope)
		const tokens = await this.#withFaults(ownTokens(issuer, client, scope, this.#fetch))
		await this.#write({ ...stored, issuer, tokens, ...(scope !== undefined && { scope }), refusals })
		return tokens.access_token
	}

	/** Records that a person must sign in, if the server uses OAuth. */
	async #requireLogin(stored: StoredLogin | undefined, lacksScope: boolean): Promise<void> {
		const issuer = await this.#findIssuer()
		if (!issuer) return
		const refusals = (stored?.refusals ?? 0) + (lacksScope ? 1 : 0)
		if (refusals >= REFUSALS) throw this.#missingScopes()
		if (stored) {
			const { tokens: _, ...rest } = stored
			await this.#write(lacksScope ? { ...stored, refusals } : rest)
		}
		const { scope } = this.#challenge
		const name = `the MCP server "${this.#record.name}"`
		const how = `an operator must sign in (svc mcp login ${this.#agent.name} ${this.#record.name}, or in the console)`
		const before = this.#loginReason
		this.#loginReason = lacksScope
			? `${name} wants further permissions (${scope ?? 'unnamed'}): ${how}`
			: `${name} needs a login: ${how}`
		if (this.#loginReason !== before) await this.#emit('mcp.login_required', { scopes: scopesOf(scope) })
	}

	async #findIssuer(): Promise<Issuer | undefined> {
		const { findIssuer } = await oauth()
		return this.#withFaults(findIssuer(this.#server, this.#challenge, this.#fetch, this.#record.auth?.type === 'oauth'))
	}

	/** The client: the operator's, the one that is already registered, the client ID metadata document, or a newly registered one. */
	async #client(issuer: Issuer, redirect: string, scope: string | undefined): Promise<AuthClient> {
		const { register, signedClient } = await oauth()
		const { client_id, client_secret, private_key } = this.#record.auth ?? {}
		const endpoint = new URL(issuer.metadata?.token_endpoint ?? new URL('/token', issuer.issuer))
		const secretOf = async (secret: string): Promise<string> => {
			const value = await readSecret(secret, this.#record, this.#agent, endpoint, this.#services)
			this.#hide(value)
			return value
		}
		if (client_id !== undefined) {
			if (private_key) return signedClient(client_id, await secretOf(private_key.secret))
			return {
				information: { client_id, ...(client_secret && { client_secret: await secretOf(client_secret.secret) }) },
			}
		}
		const stored = await this.#read()
		if (stored?.client && stored.issuer.issuer === issuer.issuer && stored.redirect === redirect)
			return { information: stored.client }
		const document = clientDocument(this.#services.gateway)
		const isKnown = document !== null && issuer.metadata?.client_id_metadata_document_supported === true
		const client = isKnown
			? { client_id: document }
			: await this.#withFaults(register(issuer, redirect, scope, this.#fetch))
		const { tokens: _, ...rest } = stored ?? {}
		await this.#write({ ...rest, issuer, client, redirect })
		return { information: client }
	}

	/** The scopes of the latest challenge and those granted before; else the operator's setting; else all that the server lists. */
	#scopeOf({ scopes, metadata }: Issuer, stored: StoredLogin | undefined): string | undefined {
		const asked = scopesOf(this.#challenge.scope)
		const before = asked.length > 0 ? scopesOf(stored?.tokens && (stored.tokens.scope ?? stored.scope)) : []
		const wanted = asked.length > 0 ? [...before, ...asked] : (this.#record.auth?.scopes ?? scopes ?? [])
		// Without this scope, some servers issue no refresh token.
		const offline =
			!this.#signsInItself && metadata?.scopes_supported?.includes('offline_access') ? ['offline_access'] : []
		const all = [...new Set([...wanted, ...(wanted.length > 0 ? offline : [])])]
		return all.length > 0 ? all.join(' ') : undefined
	}

	/** Converts errors of an authorization server to Faults with redacted messages. */
	async #withFaults<T>(answer: Promise<T>): Promise<T> {
		try {
			return await answer
		} catch (error) {
			if (isFault(error, 'mcp_failed', 'address_refused', 'fetch_failed', 'fetch_timeout')) throw error
			const message = this.#redact(messageOf(error)).slice(0, TEXT_LIMIT)
			throw new Fault('mcp_failed', `its authorization server: ${message}`, { cause: error })
		}
	}

	#missingScopes(): Fault {
		const { scope = 'unnamed' } = this.#challenge
		return this.#fault(
			'mcp_failed',
			`refused its tokens ${REFUSALS} times because of missing scopes (${scope}); the account, or the client, may not have them: svc mcp logout ${this.#agent.name} ${this.#record.name} starts over`,
		)
	}

	#fault(code: 'conflict' | 'invalid_request' | 'forbidden' | 'mcp_failed', what: string): Fault {
		return new Fault(code, this.#redact(`the MCP server "${this.#record.name}" ${what}`))
	}

	#read(): Promise<StoredLogin | undefined> {
		if (!this.#stored) {
			const reading = this.#logins.read()
			this.#stored = reading
			reading.then(
				(login) => this.#hideTokens(login),
				() => (this.#stored = undefined),
			)
		}
		return this.#stored
	}

	async #write(login: StoredLogin | undefined): Promise<void> {
		this.#hideTokens(login)
		// Even if the write fails: the authorization server may have invalidated the old refresh token.
		this.#stored = Promise.resolve(login)
		await this.#logins.write(login)
	}

	#hideTokens(login: StoredLogin | undefined): void {
		const { access_token, refresh_token } = login?.tokens ?? {}
		this.#hide(access_token, refresh_token, login?.client?.client_secret)
	}

	#hide(...values: (string | undefined)[]): void {
		const added = values.filter((value) => value !== undefined && !this.#secrets.includes(value)) as string[]
		// Earlier values stay: responses in progress may contain them.
		if (added.length > 0) this.#secrets = [...added, ...this.#secrets].slice(0, 16)
	}

	#redact(text: string): string {
		const redacted = this.#secrets.reduce((all, value) => all.replaceAll(value, '[redacted]'), text)
		return this.#services.redactor.of([this.#agent]).text(redacted, 'record')
	}

	async #emit(event_type: string, payload: Record<string, unknown>): Promise<void> {
		const about = { server: this.#record.name, mcp_id: this.#record.id }
		await this.#services.emit({ event_type, payload: { ...about, ...payload } }, this.#agent.name)
	}
}

function withToken(init: GuardedInit, token: string | undefined): GuardedInit {
	if (token === undefined) return init
	const headers = new Headers(init.headers)
	headers.set('authorization', `Bearer ${token}`)
	return { ...init, headers }
}

function isDue({ renew_at }: Tokens): boolean {
	return renew_at !== null && renew_at <= Date.now()
}

function scopesOf(scope: string | undefined): string[] {
	return (scope ?? '').split(' ').filter((one) => one !== '')
}
