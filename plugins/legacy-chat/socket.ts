/** One open WebSocket. Answers one message after another, with frames. */
import { jsonIn } from '../../core/util/json-in.ts'
import { Joi } from '../../core/util/lazy-joi.ts'
import type { RawData, WebSocket } from 'ws'
import { Fault, isFault, shownFault } from '../../core/errors.ts'
import type { AgentRef, Context } from '../../core/plugin.ts'
import { causedBy } from '../../core/util/context.ts'
import type { Credentials, OpenRequest } from '../auth/contract.ts'
import type { ChatSettings } from './contract.ts'
import { begin } from './exchange.ts'
import type { ReplyEvent } from './exchange.ts'
import { context, message } from './message.ts'
import type { ChatMessage } from './message.ts'

/** Every frame has `content`, which a client can simply show. */
type Frame =
	| ({ type: ReplyEvent[0]; content: string } & Partial<ReplyEvent[1]>)
	| { type: 'done'; content: string; tokens_used: number; processing_time_ms: number; question_id: string | undefined }
	| { type: 'error'; content: string }

type SocketContext = Pick<Context<ChatSettings>, 'use' | 'log' | 'gateway' | 'config' | 'redactor'>

export interface ChatSocketOptions {
	agent: AgentRef
	credentials: Credentials
	/** Called once, when the socket has closed. */
	closed: () => void
}

/** Limit of messages that wait while another one is being answered. */
const WAITING_LIMIT = 8
/** Limit of refused frames within a minute; the next one closes the socket. */
const REFUSED_LIMIT = 16
const MINUTE_MS = 60_000
/** Time for the client to answer a close frame. */
const CLOSE_MS = 1_000
/** Limit of bytes that wait for a client, not counting the last frame of a reply. */
const BACKLOG_LIMIT = 1024 * 1024

const schema = Joi.object<ChatMessage>({ message, context })
	.required()
	.label('the frame')
	// Reports only the first problem, since a frame may have very many.
	.prefs({ convert: false, abortEarly: true, errors: { wrap: { label: false } } })

export class ChatSocket implements OpenRequest {
	readonly agent: AgentRef
	readonly credentials: Credentials
	readonly #ctx: SocketContext
	readonly #socket: WebSocket
	readonly #left = new AbortController()
	readonly #waiting: ChatMessage[] = []
	#busy = false
	#refused = { count: 0, since: 0 }
	#pinged = performance.now()
	#answered = true

	constructor(ctx: SocketContext, socket: WebSocket, { agent, credentials, closed }: ChatSocketOptions) {
		this.#ctx = ctx
		this.#socket = socket
		this.agent = agent
		this.credentials = credentials
		socket.on('message', (data, isBinary) => this.#receive(data, isBinary))
		socket.on('pong', () => (this.#answered = true))
		socket.on('ping', () => this.#mustKeepUp()) // ws has already queued the pong
		socket.on('error', () => {}) // ws closes the socket with the right code, such as 1009
		socket.once('close', () => {
			this.#left.abort(new Fault('stopped', 'the client has left'))
			closed()
		})
	}

	end(why: Fault): void {
		if (this.#left.signal.aborted) return
		this.#left.abort(why)
		const restart = this.#ctx.gateway.state() === 'draining' ? 1001 : 1012
		this.#socket.close(why.code === 'unavailable' ? restart : 1008, why.message)
		const cut = setTimeout(() => this.#socket.terminate(), CLOSE_MS)
		this.#socket.once('close', () => clearTimeout(cut))
	}

	beat(now: number): void {
		if (now - this.#pinged < this.#ctx.config.ping_s * 1000) return
		this.#pinged = now
		if (!this.#answered) return this.#socket.terminate()
		this.#answered = false
		this.#socket.ping()
	}

	#receive(data: RawData, isBinary: boolean): void {
		if (this.#left.signal.aborted) return
		const parsed = isBinary ? 'send text frames with JSON such as {"message": "hello"}' : parse(data)
		if (typeof parsed === 'string') return this.#refuse(parsed)
		if (this.#waiting.length >= WAITING_LIMIT) {
			return this.#refuse(`${WAITING_LIMIT} messages wait already; wait for their replies before you send more`)
		}
		this.#waiting.push(parsed)
		if (!this.#busy) void this.#work()
	}

	#refuse(content: string): void {
		const now = performance.now()
		if (now - this.#refused.since >= MINUTE_MS) this.#refused = { count: 0, since: now }
		if (++this.#refused.count <= REFUSED_LIMIT) return this.#send({ type: 'error', content })
		this.end(new Fault('rate_limited', `more than ${REFUSED_LIMIT} invalid frames within a minute`))
	}

	async #work(): Promise<void> {
		this.#busy = true
		for (let parsed = this.#waiting.shift(); parsed && !this.#left.signal.aborted; parsed = this.#waiting.shift())
			await this.#answer(parsed)
		this.#busy = false
	}

	async #answer(asked: ChatMessage): Promise<void> {
		const { signal } = this.#left
		try {
			if (!(await this.#ctx.use('auth').check(this.credentials)))
				return this.end(new Fault('unauthorized', 'the token is no longer valid'))
			signal.throwIfAborted()
			const tell = (...[type, data]: ReplyEvent): void => this.#send({ type, content: '', ...data })
			const { reply } = await causedBy(this.credentials, () => begin(this.#ctx, this.agent, asked, signal, tell))
			const parsed = await reply
			if (parsed.status === 'failed') return this.#send({ type: 'error', content: parsed.message }, true)
			const { tokens_used, processing_time_ms, question_id } = parsed.metadata
			this.#send({ type: 'done', content: parsed.content, tokens_used, processing_time_ms, question_id }, true)
		} catch (error) {
			if (signal.aborted) return
			if (!isFault(error)) this.#ctx.log.error({ err: error, agent: this.agent.name }, 'a chat message failed')
			this.#send({ type: 'error', content: shownFault(error).message })
		}
	}

	#send(frame: Frame, last = false): void {
		if (this.#left.signal.aborted) return
		if (!last && !this.#mustKeepUp()) return
		const text = this.#ctx.redactor.clearanceOf(this.credentials.scope).text(JSON.stringify(frame))
		this.#socket.send(text, () => {}) // `close` notices a client that has left
	}

	/** Terminates the socket and returns false if the client reads too slowly. */
	#mustKeepUp(): boolean {
		if (this.#socket.bufferedAmount <= BACKLOG_LIMIT) return true
		this.#socket.terminate()
		return false
	}
}

/** The message of a frame, or the problem with the frame. */
function parse(data: RawData): ChatMessage | string {
	const value = jsonIn(String(data))
	if (value === undefined) return 'the frame is not JSON; send one object such as {"message": "hello"}'
	const checked = schema.validate(value)
	return checked.error ? checked.error.message : checked.value
}
