/** One session: the SDK's server and transport, with limits and recovery that they lack. */
import { Server } from '@modelcontextprotocol/sdk/server/index.js'
import { WebStandardStreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js'
import type { RequestId } from '@modelcontextprotocol/sdk/types.js'
import { Fault } from '../../core/errors.ts'
import { within } from '../../core/util/deadline.ts'
import { newId, randomText } from '../../core/util/ids.ts'
import { noValidator } from '../shared/no-validator.ts'
import { holds } from '../shared/scopes.ts'
import { tryLater } from '../shared/try-later.ts'
import type { Credentials, OpenRequest } from '../auth/contract.ts'
import type { McpContext } from './call.ts'
import { openClientLog } from './client-log.ts'
import type { McpAnswer, McpRequest } from './contract.ts'
import { correctedError, requestIdIn, transportHeaders, withoutContent } from './messages.ts'
import { Replay } from './replay.ts'
import { capabilitiesFor, handleRequests } from './requests.ts'

export interface SessionHooks {
	/** The client has sent `initialize`. */
	initialized(): void
	/** Called once, when an initialized session ends. */
	ended(): void
}

/** A session of an earlier instance of the plugin that is continued. */
export interface EarlierSession {
	id: string
	conversation: string
}

const SESSION_ID_BYTES = 24
/** Limits of concurrent streams and calls of one session. */
const STREAM_LIMIT = 64
const CALL_LIMIT = 32
/** Time for responses to calls before the session ends. */
const DRAIN_LIMIT_MS = 2_000
const instructions = `Runs agents of a self-hosted gateway. list_agents lists them; run_agent gives one a prompt and returns its answer. An agent may ask a question meanwhile: then the result contains the question, and answer_question lets the run continue. For long work call run_agent with wait: false, and get_run later.`

export class McpSession implements OpenRequest {
	readonly id: string
	/** The conversation of calls that do not name one. */
	readonly conversation: string
	readonly owner: string
	readonly credentials: Credentials
	readonly #hooks: SessionHooks
	readonly #idleLimitMs: number
	readonly #isContinued: boolean
	readonly #hasPrompts: boolean
	readonly #replay = new Replay()
	readonly #server: Server
	readonly #transport: WebStandardStreamableHTTPServerTransport
	/** Requests of the client that have no response yet. */
	readonly #open = new Set<RequestId>()
	/** Aborts when the session ends or is about to end: calls stop waiting for runs, which continue. */
	readonly #closing = new AbortController()
	#streams = 0
	#calls = 0
	#isInitialized = false
	#idleSince = performance.now()
	/** Resolves when no call is in progress. */
	#noCalls: PromiseWithResolvers<void> | undefined

	constructor(ctx: McpContext, credentials: Credentials, owner: string, hooks: SessionHooks, earlier?: EarlierSession) {
		this.id = earlier?.id ?? randomText(SESSION_ID_BYTES)
		this.conversation = earlier?.conversation ?? newId()
		this.#isContinued = earlier !== undefined
		this.credentials = credentials
		this.owner = owner
		this.#hooks = hooks
		this.#idleLimitMs = ctx.config.idle_timeout_s * 1000
		this.#transport = new WebStandardStreamableHTTPServerTransport({
			sessionIdGenerator: () => this.id,
			onsessioninitialized: () => {
				this.#isInitialized = true
				hooks.initialized()
			},
			eventStore: this.#replay,
		})
		this.#transport.onclose = () => this.#onClose()
		const isAllowed = (scope: string): boolean => holds(credentials.scope, scope)
		const capabilities = capabilitiesFor(ctx, isAllowed)
		this.#hasPrompts = capabilities.prompts !== undefined
		this.#server = new Server(
			{ name: 'svc-gateway', title: 'Agent Gateway', version: ctx.gateway.version },
			{
				capabilities,
				instructions,
				jsonSchemaValidator: noValidator,
			},
		)
		// By default, the first request has the id 0, which the SDK's clients cannot cancel.
		Reflect.set(this.#server, '_requestMessageId', 1)
		this.#server.onerror = ({ message }) => ctx.log.debug(`an MCP client caused an error: ${withoutContent(message)}`)
		handleRequests(this.#server, {
			ctx,
			isAllowed,
			clearance: ctx.redactor.clearanceOf(credentials.scope),
			closing: this.#closing.signal,
			log: openClientLog(),
			conversation: (name = this.conversation) => `mcp:${owner}:${name}`,
			beginCall: () => this.#beginCall(),
			forget: (id) => this.#forget(id),
		})
	}

	/** The time (`performance.now`) since which the session is idle; null if it is not. */
	get idle_since(): number | null {
		return this.#streams === 0 && this.#calls === 0 ? this.#idleSince : null
	}

	beat(now: number): void {
		if (now - (this.idle_since ?? now) > this.#idleLimitMs) this.end()
	}

	/** Repeats the `initialize` request that the client sent to an earlier instance. Throws `not_found` if it fails. */
	async initialize(params: unknown): Promise<void> {
		const messages = [
			{ jsonrpc: '2.0', id: 'initialize', method: 'initialize', params },
			{ jsonrpc: '2.0', method: 'notifications/initialized' },
		]
		const headers = { accept: 'application/json, text/event-stream', 'content-type': 'application/json' }
		for (const body of messages) {
			const own = this.#isInitialized ? { ...headers, 'mcp-session-id': this.id } : headers
			const { response, closed } = await this.handle({ method: 'POST', headers: own, body })
			await response.text()
			closed()
			if (!response.ok)
				throw new Fault('not_found', 'the session cannot be continued; send `initialize` to open another')
		}
	}

	/** Throws `invalid_request`, `rate_limited`, `unavailable` while the session is closing, and `not_found` after its end. */
	async handle({ method, headers, body }: Omit<McpRequest, 'credentials'>): Promise<McpAnswer> {
		if (this.#closing.signal.aborted && this.#isInitialized)
			throw tryLater('unavailable', 'the gateway is stopping or changing its settings; try again in a moment', 1)
		if (this.#closing.signal.aborted)
			throw new Fault('not_found', 'the session has ended; send `initialize` to open another')
		if (this.#streams >= STREAM_LIMIT)
			throw tryLater('rate_limited', `${STREAM_LIMIT} requests of this session are open; wait for one to end`, 1)
		const id = requestIdIn(body)
		if (id !== undefined && this.#open.has(id))
			throw new Fault('invalid_request', `request ${JSON.stringify(id)} of this session is already in progress`)
		this.#streams++
		let isRefused = false
		const closed = (): void => {
			this.#streams--
			// A refused request does not keep a session alive.
			if (!isRefused) this.#idleSince = performance.now()
		}
		try {
			if (!this.#server.transport) await this.#connect()
			if (id !== undefined) this.#open.add(id)
			const passed = transportHeaders(headers)
			// The earlier instance has answered the requests in progress. Its streams continue without their earlier events.
			if (this.#isContinued && !this.#replay.isOwn(passed.get('last-event-id'))) passed.delete('last-event-id')
			const request = new Request('http://gateway.invalid/mcp', { method, headers: passed })
			const response = await this.#transport.handleRequest(request, { parsedBody: body })
			isRefused = !response.ok
			if (method === 'GET' && response.ok) this.#endAnswered(headers['last-event-id'])
			if (isRefused && id !== undefined) this.#open.delete(id)
			return { response, closed }
		} catch (error) {
			closed()
			if (id !== undefined) this.#open.delete(id)
			throw error
		}
	}

	/** Answers the calls in progress with their current state, then ends. */
	async drain(): Promise<void> {
		this.#closing.abort()
		if (this.#calls > 0) {
			this.#noCalls = Promise.withResolvers()
			await within(DRAIN_LIMIT_MS, 'calls', this.#noCalls.promise).catch(() => {})
		}
		this.end()
	}

	/** Notifies the client that its list of prompts may have changed. */
	promptsChanged(): void {
		if (this.#hasPrompts) this.#server.sendPromptListChanged().catch(() => {}) // it is ending
	}

	/** Ends the session and its streams immediately. Runs that its calls started continue. */
	end(): void {
		void this.#transport.close()
	}

	/** Counts a call until the returned function is called. */
	#beginCall(): () => void {
		if (this.#calls >= CALL_LIMIT)
			throw new Fault('rate_limited', `${CALL_LIMIT} calls of this session are in progress; wait for one to end`)
		this.#calls++
		return () => {
			this.#calls--
			this.#idleSince = performance.now()
			// In the next turn of the event loop, after the result was sent to the stream.
			if (this.#calls === 0) setImmediate(() => this.#noCalls?.resolve())
		}
	}

	/** Runs before the SDK aborts the calls in progress, so that these do not count as cancelled. */
	#onClose(): void {
		this.#closing.abort()
		if (this.#isInitialized) this.#hooks.ended()
		this.#isInitialized = false
	}

	async #connect(): Promise<void> {
		await this.#server.connect(this.#transport)
		const send = this.#transport.send.bind(this.#transport)
		this.#transport.send = async (message, options) => {
			if (!('method' in message) && message.id !== undefined) this.#open.delete(message.id)
			await send('error' in message ? { ...message, error: correctedError(message.error) } : message, options)
		}
	}

	/** Ends a stream that was resumed after its request was answered: the SDK would keep it open, although no data follows. */
	#endAnswered(lastEventId: unknown): void {
		const stream = typeof lastEventId === 'string' ? this.#replay.endedStreamOf(lastEventId) : undefined
		if (stream === undefined) return
		const streams = Reflect.get(this.#transport, '_streamMapping') as Map<string, { cleanup(): void }>
		streams.get(stream)?.cleanup()
	}

	/**
	 * Closes the stream of a cancelled request, and sends a response, which is not delivered. Without this, the SDK would keep the
	 * stream and the request's id until the session ends, since a cancelled request gets no response.
	 */
	#forget(id: RequestId): void {
		this.#transport.closeSSEStream(id)
		const error = { code: 0, message: 'cancelled' }
		this.#transport.send({ jsonrpc: '2.0', id, error }).catch(() => {})
	}
}
