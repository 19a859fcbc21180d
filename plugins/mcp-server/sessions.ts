/** Opens sessions, finds them for their owners, and ends them. */
import { isDeepStrictEqual } from 'node:util'
import { Fault } from '../../core/errors.ts'
import { openRefresher } from '../shared/refresher.ts'
import { tryLater } from '../shared/try-later.ts'
import type { AgentLimit } from '../shared/agent-limit.ts'
import type { Context, Services } from '../../core/plugin.ts'
import type { Credentials, OpenRequests } from '../auth/contract.ts'
import { isInitialize, refuseBulk } from './bulk.ts'
import type { McpContext } from './call.ts'
import type { McpAnswer, McpRequest, McpServerSettings } from './contract.ts'
import { keptSessions } from './kept-sessions.ts'
import type { EarlierSession, McpSession } from './session.ts'

const RETRY_AFTER_S = 5
/** Events that may change the list of prompts, and the minimum time between two notifications about it. */
const PROMPT_EVENTS = ['skill.approved', 'skill.removed', 'security.violation', 'agent.deleted']
const NOTICE_EVERY_MS = 1_000
const NO_SESSION = 'send `initialize` first, and then the header Mcp-Session-Id of its answer'
/** For a client that uses the old transport HTTP+SSE, which begins with a GET request. */
const NO_SESSION_TO_STREAM = `this server speaks Streamable HTTP, not the old transport HTTP+SSE; set the client to "http" in place of "sse". In Streamable HTTP, ${NO_SESSION}`

export class Sessions implements AsyncDisposable {
	readonly #ctx: Context<McpServerSettings>
	readonly #sessions = new Map<string, McpSession>()
	readonly #open: OpenRequests<McpSession>
	/** Sessions that are being opened. They are not in `#sessions` yet. */
	readonly #opening = new Set<{ owner: string }>()
	readonly #kept: ReturnType<typeof keptSessions>
	/** Sessions of an earlier instance that are being continued, by owner and id. */
	readonly #continuing = new Map<string, Promise<McpSession | undefined>>()
	/** Sessions whose access token expired, and which may continue with the next token: by id, the timer that forgets each. */
	readonly #expired = new Map<string, NodeJS.Timeout>()

	constructor(ctx: Context<McpServerSettings>) {
		this.#ctx = ctx
		this.#open = ctx.use('auth').openRequests({ what: 'MCP sessions are open' })
		this.#kept = keptSessions(ctx)
		this.#forgetUnused()
		// Immediately for the first change, then at intervals.
		const promptsChanged = openRefresher(NOTICE_EVERY_MS, () => {
			for (const session of this.#sessions.values()) session.promptsChanged()
		})
		for (const type of PROMPT_EVENTS) {
			ctx.on(type, ({ payload }) => {
				if (type !== 'security.violation' || 'skill_id' in payload) promptsChanged()
			})
		}
	}

	/**
	 * Throws `not_found` for a session that does not exist or has another owner; `invalid_request`, `payload_too_large`,
	 * `rate_limited`, or `unavailable` if there is no room for another session.
	 */
	async handle(request: McpRequest): Promise<McpAnswer> {
		refuseBulk(request.body)
		const id = request.headers['mcp-session-id']
		if (typeof id === 'string') {
			const answer = await (await this.#find(id, request.credentials)).handle(request)
			// If the token has expired within the tolerance, the session was kept for the next token, which must not happen.
			if (request.method === 'DELETE' && !this.#sessions.has(id)) this.#forget(id)
			return answer
		}
		if (request.method === 'POST' && isInitialize(request.body)) return this.#begin(request)
		throw new Fault('invalid_request', request.method === 'GET' ? NO_SESSION_TO_STREAM : NO_SESSION)
	}

	/** Answers the calls that wait for runs. The runs continue, and the next instance continues the sessions. */
	async [Symbol.asyncDispose](): Promise<void> {
		for (const timer of this.#expired.values()) clearTimeout(timer)
		await Promise.all([...this.#sessions.values()].map((session) => session.drain()))
	}

	/** Throws `not_found` unless the caller owns the session, with the same permissions as when it was opened. */
	async #find(id: string, credentials: Credentials): Promise<McpSession> {
		const session = this.#sessions.get(id) ?? (await this.#continued(id, credentials))
		const isOwn = session?.owner === ownerOf(credentials)
		if (isOwn && isDeepStrictEqual(session.credentials.rules, credentials.rules)) return session
		throw new Fault('not_found', 'there is no such session, or it has ended; send `initialize` to open another')
	}

	async #begin(request: McpRequest): Promise<McpAnswer> {
		const { credentials, body } = request
		return this.#opened(credentials, undefined, async (session) => {
			const answer = await session.handle(request)
			if (this.#sessions.has(session.id)) {
				const { id, owner, conversation } = session
				await this.#kept.keep(id, { owner, conversation, initialize: (body as { params?: unknown }).params })
			}
			return answer
		})
	}

	/** Reopens a session of an earlier instance, with the client's `initialize`. Undefined if this caller has no such session. */
	#continued(id: string, credentials: Credentials): Promise<McpSession | undefined> {
		const begin = async (): Promise<McpSession | undefined> => {
			const kept = await this.#kept.find(id)
			if (kept?.owner !== ownerOf(credentials)) return undefined
			return this.#opened(credentials, { id, conversation: kept.conversation }, async (session) => {
				await session.initialize(kept.initialize)
				return session
			})
		}
		// A client may send several requests at once. By owner too: a caller must not wait for the session of another.
		const place = `${ownerOf(credentials)} ${id}`
		const continuing = this.#continuing.get(place) ?? begin().finally(() => this.#continuing.delete(place))
		this.#continuing.set(place, continuing)
		return continuing
	}

	/** Creates a session, which `begin` initializes. */
	async #opened<T>(
		credentials: Credentials,
		earlier: EarlierSession | undefined,
		begin: (session: McpSession) => Promise<T>,
	): Promise<T> {
		const owner = ownerOf(credentials)
		this.#makeRoom(owner)
		const opening = { owner }
		this.#opening.add(opening)
		try {
			// Loaded with the first session, since the official SDK takes about 150 ms and 20 MB.
			const { McpSession } = await import('./session.ts')
			const hooks = {
				initialized: () => {
					if (this.#ctx.signal.aborted) return session.end() // nothing else would end it
					this.#stopExpiry(session.id)
					this.#opening.delete(opening)
					this.#sessions.set(session.id, session)
					this.#open.enter(session)
				},
				ended: () => {
					this.#sessions.delete(session.id)
					this.#open.leave(session)
					if (this.#ctx.signal.aborted) return
					if (hasExpired(credentials)) this.#keepExpired(session.id)
					else this.#kept.forget(session.id)
				},
			}
			const session = new McpSession(contextFor(this.#ctx, credentials), credentials, owner, hooks, earlier)
			return await begin(session)
		} finally {
			this.#opening.delete(opening)
		}
	}

	/**
	 * Keeps a session whose access token has expired, as long as an idle session. Access tokens are valid for minutes, and a client
	 * gets the next token only when a request is refused.
	 */
	#keepExpired(id: string): void {
		const { max_sessions, idle_timeout_s } = this.#ctx.config
		this.#expired.set(id, setTimeout(() => this.#forget(id), idle_timeout_s * 1_000).unref())
		const [oldest = id] = this.#expired.keys()
		if (this.#expired.size > max_sessions) this.#forget(oldest)
	}

	#forget(id: string): void {
		this.#stopExpiry(id)
		this.#kept.forget(id)
	}

	/** Call this when the session continues or is forgotten. */
	#stopExpiry(id: string): void {
		clearTimeout(this.#expired.get(id))
		this.#expired.delete(id)
	}

	/** Forgets sessions of earlier instances: immediately those above the limit, later all whose clients have not returned. */
	#forgetUnused(): void {
		const { config, defer } = this.#ctx
		const forget = (limit: number): void =>
			void this.#kept.forgetOthers([...this.#sessions.keys(), ...this.#expired.keys()], limit)
		forget(config.max_sessions)
		const timer = setTimeout(forget, config.idle_timeout_s * 1_000, 0).unref()
		defer(() => clearTimeout(timer), 'timer of MCP sessions')
	}

	/**
	 * Ends the caller's longest-idle session if the limit is reached, since many clients never end their sessions. Never ends the
	 * session of another caller. Throws `unavailable` if the caller has no idle session.
	 */
	#makeRoom(owner: string): void {
		const { max_sessions } = this.#ctx.config
		const own = [...this.#sessions.values()].filter((session) => session.owner === owner)
		const opening = [...this.#opening].filter((one) => one.owner === owner).length
		if (this.#sessions.size + this.#opening.size < max_sessions && own.length + opening < max_sessions / 2) return
		const idle = own.filter((session) => session.idle_since !== null)
		const [oldest] = idle.toSorted((a, b) => (a.idle_since ?? 0) - (b.idle_since ?? 0))
		if (!oldest) {
			const message = `too many MCP sessions are open (plugins.mcp-server.max_sessions: ${max_sessions})`
			throw tryLater('unavailable', message, RETRY_AFTER_S)
		}
		oldest.end()
	}
}

/** Only access tokens of the identity provider are renewed by clients. Other tokens are replaced by people. */
function hasExpired({ claims }: Credentials): boolean {
	return claims !== undefined && claims.exp * 1_000 <= Date.now()
}

/** The owner of a session, and the first part of the names of its conversations. */
function ownerOf({ token_id }: Credentials): string {
	return token_id ?? 'local'
}

/** The context of a session, limited to the agents that its caller may see, and to their runs. */
function contextFor(ctx: McpContext, caller: AgentLimit): McpContext {
	if (!caller.agents) return ctx
	const use = (name: keyof Services): unknown => {
		if (name === 'agents') return ctx.use('agents').visibleTo(caller)
		return name === 'runs' ? ctx.use('runs').visibleTo(caller) : ctx.use(name)
	}
	return Object.create(ctx, { use: { value: use } }) as McpContext
}
