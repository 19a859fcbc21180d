/** The table of sessions: who may open one, the owner of each, and how they end. */
import { isDeepStrictEqual } from 'node:util'
import { Fault } from '../../core/errors.ts'
import { once } from '../shared/once.ts'
import { openRefresher } from '../shared/refresher.ts'
import { tryLater } from '../shared/try-later.ts'
import type { AgentLimit } from '../shared/agent-limit.ts'
import type { Context, Services } from '../../core/plugin.ts'
import type { Credentials, OpenRequests } from '../auth/contract.ts'
import { isInitialize, refuseBulk } from './bulk.ts'
import type { McpContext } from './call.ts'
import type { McpAnswer, McpRequest, McpServer, McpServerSettings } from './contract.ts'
import { keptSessions } from './kept-sessions.ts'
import type { EarlierSession, McpSession } from './session.ts'

/** Loaded with the first session, since the official SDK takes about 150 ms and 20 MB. */
const loadSession = once(() => import('./session.ts'))
const RETRY_AFTER_S = 5
/** Events after which the list of prompts may be another one, and the least time between two notices of that. */
const PROMPT_EVENTS = ['skill.approved', 'skill.removed', 'security.violation', 'agent.deleted']
const NOTICE_EVERY_MS = 1_000
const NO_SESSION = 'send `initialize` first, and then the header Mcp-Session-Id of its answer'
/** What a client for the old transport HTTP+SSE begins with. */
const NO_SESSION_TO_STREAM = `this server speaks Streamable HTTP, not the old transport HTTP+SSE; set the client to "http" in place of "sse". In Streamable HTTP, ${NO_SESSION}`

export class Sessions implements McpServer, AsyncDisposable {
	readonly #ctx: Context<McpServerSettings>
	readonly #sessions = new Map<string, McpSession>()
	readonly #open: OpenRequests<McpSession>
	/** Sessions that are being opened, and are not in the table yet. */
	readonly #opening = new Set<{ owner: string }>()
	readonly #kept: ReturnType<typeof keptSessions>
	/** By id: sessions of an earlier instance that are being continued. */
	readonly #continuing = new Map<string, Promise<McpSession | undefined>>()
	/** By id: sessions whose access token expired, and which may continue with the next one. With the timer that forgets each. */
	readonly #expired = new Map<string, NodeJS.Timeout>()

	constructor(ctx: Context<McpServerSettings>) {
		this.#ctx = ctx
		this.#open = ctx.use('auth').openRequests({ what: 'MCP sessions are open' })
		this.#kept = keptSessions(ctx)
		this.#forgetUnused()
		// At once for the first change; then at intervals.
		const promptsChanged = openRefresher(NOTICE_EVERY_MS, () => {
			for (const session of this.#sessions.values()) session.promptsChanged()
		})
		for (const type of PROMPT_EVENTS) {
			ctx.on(type, ({ payload }) => {
				if (type !== 'security.violation' || 'skill_id' in payload) promptsChanged()
			})
		}
	}

	get size(): number {
		return this.#sessions.size
	}

	async handle(request: McpRequest): Promise<McpAnswer> {
		refuseBulk(request.body)
		const id = request.headers['mcp-session-id']
		if (typeof id === 'string') {
			const answer = await (await this.#find(id, request.credentials)).handle(request)
			// Its token may have expired within the tolerance; it must not continue with the next one.
			if (request.method === 'DELETE' && !this.#sessions.has(id)) this.#forget(id)
			return answer
		}
		if (request.method === 'POST' && isInitialize(request.body)) return this.#begin(request)
		throw new Fault('invalid_request', request.method === 'GET' ? NO_SESSION_TO_STREAM : NO_SESSION)
	}

	/** Calls that wait for their runs are answered; the runs continue, and so do the sessions with the next instance. */
	async [Symbol.asyncDispose](): Promise<void> {
		for (const timer of this.#expired.values()) clearTimeout(timer)
		await Promise.all([...this.#sessions.values()].map((session) => session.leave()))
	}

	/** For others than its owner it does not exist, nor for its owner with a token that permits something else. */
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

	/** Opens a session of an earlier instance again, with the client's own `initialize`; undefined if this caller has no such session. */
	#continued(id: string, credentials: Credentials): Promise<McpSession | undefined> {
		const begin = async (): Promise<McpSession | undefined> => {
			const kept = await this.#kept.find(id)
			if (kept?.owner !== ownerOf(credentials)) return undefined
			return this.#opened(credentials, { id, conversation: kept.conversation }, async (session) => {
				await session.initialize(kept.initialize)
				return session
			})
		}
		// A client sends several requests at once, and another caller must not wait for an answer that is not its own.
		const place = `${ownerOf(credentials)} ${id}`
		const continuing = this.#continuing.get(place) ?? begin().finally(() => this.#continuing.delete(place))
		this.#continuing.set(place, continuing)
		return continuing
	}

	/** Makes a session and hands it to `begin`, which initializes it. */
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
			const { McpSession } = await loadSession()
			const hooks = {
				begun: () => {
					if (this.#ctx.signal.aborted) return session.end() // nothing would end it later
					this.#stopExpiry(session.id)
					this.#opening.delete(opening)
					this.#sessions.set(session.id, session)
					this.#open.enter(session)
				},
				over: () => {
					this.#sessions.delete(session.id)
					this.#open.leave(session)
					if (this.#ctx.signal.aborted) return
					if (hasExpired(credentials)) this.#keepExpired(session.id)
					else this.#kept.forget(session.id)
				},
			}
			const session = new McpSession(contextFor(this.#ctx, credentials), { credentials, owner, hooks }, earlier)
			return await begin(session)
		} finally {
			this.#opening.delete(opening)
		}
	}

	/**
	 * Access tokens live for minutes, and a client gets the next one when a request is refused. Until then its session is kept, as
	 * long as an idle one.
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

	/** The session continues, or is forgotten. */
	#stopExpiry(id: string): void {
		clearTimeout(this.#expired.get(id))
		this.#expired.delete(id)
	}

	/** Sessions of earlier instances: too many at once, and then all whose clients have not returned in time. */
	#forgetUnused(): void {
		const { config, log, defer } = this.#ctx
		const forget = (limit: number): void => {
			this.#kept
				.forgetOthers([...this.#sessions.keys(), ...this.#expired.keys()], limit)
				.catch((error: unknown) => log.debug({ err: error }, 'records of ended MCP sessions stay for now'))
		}
		forget(config.max_sessions)
		const timer = setTimeout(forget, config.idle_timeout_s * 1_000, 0).unref()
		defer(() => clearTimeout(timer), 'timer of MCP sessions')
	}

	/** Many clients never end their session. So the caller's own longest-idle session makes room, but never another caller's. */
	#makeRoom(owner: string): void {
		const { max_sessions } = this.#ctx.config
		const own = [...this.#sessions.values()].filter((session) => session.owner === owner)
		const opening = [...this.#opening].filter((one) => one.owner === owner).length
		if (this.size + this.#opening.size < max_sessions && own.length + opening < max_sessions / 2) return
		const idle = own.filter((session) => session.idle_since !== null)
		const [oldest] = idle.toSorted((a, b) => (a.idle_since ?? 0) - (b.idle_since ?? 0))
		if (!oldest) {
			const message = `too many MCP sessions are open (plugins.mcp-server.max_sessions: ${max_sessions})`
			throw tryLater('unavailable', message, RETRY_AFTER_S)
		}
		oldest.end()
	}
}

/** Only of access tokens of the identity provider: other tokens are replaced by people. */
function hasExpired({ claims }: Credentials): boolean {
	return claims !== undefined && claims.exp * 1_000 <= Date.now()
}

/** The owner of a session, and the first part of the names of its conversations. */
function ownerOf({ token_id }: Credentials): string {
	return token_id ?? 'local'
}

/** The context of a session: in it, only the agents exist that its caller may know of, and their runs. */
function contextFor(ctx: McpContext, caller: AgentLimit): McpContext {
	if (!caller.agents) return ctx
	const use = (name: keyof Services): unknown => {
		if (name === 'agents') return ctx.use('agents').visibleTo(caller)
		return name === 'runs' ? ctx.use('runs').visibleTo(caller) : ctx.use(name)
	}
	return Object.create(ctx, { use: { value: use } }) as McpContext
}
