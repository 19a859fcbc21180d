/** Where a check sits: in the gateway's place, with a link that it made and a platform of its own. */
import { isDeepStrictEqual } from 'node:util'
import Joi from 'joi'
import { pino } from 'pino'
import type {
	ChannelAdapter,
	ChannelError,
	ChatKind,
	Connection,
	IncomingMessage,
	KnownChat,
	Link,
	Markup,
	OutgoingMessage,
} from '../../../plugins/channels/adapter.ts'
import { commonConfig } from '../../../plugins/channels/schemas.ts'
import type { Ability, ChannelSuite, TestChat, TestPlatform } from '../channel.ts'

export interface Check {
	/** What a right adapter does. */
	name: string
	/** Applies only where the adapter and its platform have all of these. */
	needs?: readonly Ability[]
	/** Throws where it does not. */
	run(desk: Desk): Promise<void>
}

/** Throws where the adapter fails it. */
export async function runCheck(check: Check, suite: ChannelSuite): Promise<void> {
	const desk = new Desk(suite, await suite.platform())
	try {
		await desk.watched(() => check.run(desk))
	} finally {
		await desk.leave()
	}
}

/** Fails the check; `what` says what a right adapter does. */
export function must(condition: unknown, what: string): asserts condition {
	if (!condition) throw new Error(what)
}

/** Fails a check that applies by the flags of the suite, but has nothing to work with. */
export function has<T>(part: T | undefined, what: string, ability: Ability): T {
	must(part !== undefined, `there is ${what}, or the suite has the flag \`abilities: { ${ability}: false }\``)
	return part
}

export function same(found: unknown, wanted: unknown, what: string): void {
	if (!isDeepStrictEqual(found, wanted)) {
		throw new Error(`${what}; it should be ${JSON.stringify(wanted)}, and is ${JSON.stringify(found)}`)
	}
}

export class Desk {
	readonly adapter: ChannelAdapter
	readonly platform: TestPlatform
	/** Every message that was given to `receive`, in order, taken or not. */
	readonly received: IncomingMessage[] = []
	/** Those that were taken, each id once, as the gateway does. */
	readonly taken: IncomingMessage[] = []
	/** What was said to the link: statuses, losses, log lines. */
	readonly told: string[] = []
	/** Decides on a message; one that throws is not taken. */
	take: (message: IncomingMessage) => unknown = () => {}
	readonly #suite: ChannelSuite
	readonly patience_ms: number
	readonly abilities: NonNullable<ChannelSuite['abilities']>
	readonly #live = new Set<Live>()
	#cursor: string | null = null
	/** What no call on the link may do; a throw would only reach the adapter. */
	readonly #wrong: string[] = []
	#hasLeft = false
	#elsewhere: Desk | undefined

	constructor(suite: ChannelSuite, platform: TestPlatform) {
		this.adapter = suite.adapter
		this.platform = platform
		this.#suite = suite
		this.abilities = suite.abilities ?? {}
		this.patience_ms = suite.patience_ms ?? 60_000
	}

	/** Connects as the gateway does. `token` and `signal` where it should be other ones. */
	async connect({ token = this.platform.token, signal }: { token?: string; signal?: AbortSignal } = {}): Promise<Live> {
		const live = new Live(this, token, signal)
		this.#live.add(live)
		await live.open()
		return live
	}

	/** Connects where the connection cannot last: it does not come about, or is lost. */
	async connectInVain(what: string): Promise<void> {
		let live: Live
		try {
			live = await this.connect()
		} catch (error) {
			must((error as Partial<ChannelError>).code !== 'refused', 'connect is not refused where a retry may succeed')
			return
		}
		await this.within(live.lost.promise, what)
		await live.close()
	}

	/** As the gateway: what fails on a connection that is lost is done on the next one. */
	async afterLoss<T>(live: Live, work: (live: Live) => Promise<T>): Promise<T> {
		try {
			return await work(live)
		} catch (error) {
			const { code, message } = error as Partial<ChannelError>
			must(
				code === undefined || code === 'failed',
				`the next request works, or may work later; it is ${code}: ${message}`,
			)
			await this.within(live.lost.promise, `\`lost\` is called where nothing can be sent any more (${message})`)
			await live.close()
			return work(await this.connect())
		}
	}

	/** Another channel of the same adapter, on a platform of its own. */
	async connectElsewhere(): Promise<{ desk: Desk; live: Live }> {
		this.#elsewhere ??= new Desk(this.#suite, await this.#suite.platform())
		return { desk: this.#elsewhere, live: await this.#elsewhere.connect() }
	}

	/** As the gateway: a connection that is lost is closed and made anew, until `leave`. Answers with the one that stands now. */
	async keepConnected(): Promise<() => Live> {
		let live = await this.connect()
		const keep = async (): Promise<void> => {
			await live.lost.promise
			if (live.isClosed) return
			await live.close()
			while (!this.#hasLeft) {
				try {
					live = await this.connect()
					return void keep().catch(() => {})
				} catch (error) {
					must((error as Partial<ChannelError>).code !== 'refused', 'a connection that was cut is not refused')
				}
			}
		}
		keep().catch((error: unknown) => this.told.push(String(error)))
		return () => live
	}

	/** Waits until `condition` holds. `what` says what a right adapter does. */
	async until(condition: () => unknown, what: string): Promise<void> {
		const ms = this.patience_ms
		if (!(await holdsIn(ms, condition))) throw new Error(`${what}; nothing of it was seen in ${ms} ms`)
	}

	/** Settles as `promise` does, or throws when that takes too long. */
	async within<T>(promise: Promise<T>, what: string, ms = this.patience_ms): Promise<T> {
		let isSettled = false
		const settle = (): void => void (isSettled = true)
		promise.then(settle, settle)
		if (!(await holdsIn(ms, () => isSettled))) throw new Error(`${what}; it did not within ${ms} ms`)
		return promise
	}

	/** The message with this text, once it was taken. */
	async heard(text: string): Promise<IncomingMessage> {
		const find = (): IncomingMessage | undefined => this.taken.find((message) => message.text === text)
		await this.until(find, `a message with the text ${JSON.stringify(text)} is received`)
		return find() as IncomingMessage
	}

	/** A chat of that kind, or of the other where the platform has none. */
	async chat(kind: ChatKind = 'private'): Promise<TestChat> {
		const chat =
			(await this.platform.chat(kind)) ?? (await this.platform.chat(kind === 'private' ? 'group' : 'private'))
		must(chat, 'a platform for tests has chats of at least one kind')
		return chat
	}

	/** In the first format that has this markup, else in the best one. */
	message(chat: TestChat, text: string, more: Partial<OutgoingMessage> = {}): OutgoingMessage {
		const markup: Markup = this.adapter.can.formats.at(-1)?.markup ?? 'plain'
		return { chat: { id: chat.id, kind: chat.kind }, text, markup, nonce: nonce(), ...more }
	}

	/** What a call throws; the check fails where it does not throw. */
	async errorOf(call: Promise<unknown>, what: string): Promise<Partial<ChannelError> & Error> {
		const outcome = await this.within(
			call.then(
				() => undefined,
				(error: unknown) => ({ error }),
			),
			what,
		)
		must(outcome, what)
		const { error } = outcome
		must(error instanceof Error && error.message !== '', `what is thrown is an Error with a message; ${what}`)
		must(!`${error.message} ${error.stack}`.includes(this.platform.token), 'no error shows the token')
		return error
	}

	/** Runs a check; a rejection that nobody handles fails it, since it would be the end of a process. */
	async watched<T>(run: () => Promise<T>): Promise<T> {
		const unhandled: unknown[] = []
		const note = (error: unknown): void => void unhandled.push(error)
		process.on('unhandledRejection', note)
		try {
			const result = await run()
			must(unhandled.length === 0, `a rejection was left unhandled: ${String(unhandled[0])}`)
			const shown = this.told.find((line) => line.includes(this.platform.token))
			must(shown === undefined, 'neither log nor status show the token')
			same(this.#wrong, [], 'the link is used as the contract says')
			return result
		} finally {
			process.off('unhandledRejection', note)
		}
	}

	async leave(): Promise<void> {
		this.#hasLeft = true
		await Promise.all([...this.#live].map((live) => live.close().catch(() => {})))
		await this.platform.close()
		await this.#elsewhere?.leave()
	}

	/** The link of one connection; the state behind it is the desk's, as it outlives connections. */
	link(live: Live, token: string): Link {
		const log = pino({ level: 'trace' }, { write: (line: string) => void this.told.push(line) })
		return {
			channel_id: 'channel-of-a-test',
			token,
			config: this.#config(),
			log,
			signal: live.signal,
			cursor: async () => this.#cursor,
			chats: async () => this.#chats(),
			receive: (message) => {
				const taken = this.#receive(live, message)
				taken.catch(() => {}) // as in the gateway: who does not look has lost nothing, since it is delivered again
				return taken
			},
			advance: async (cursor) => {
				await live.queue
				live.mustBeOpen()
				this.#cursor = cursor
			},
			status: (status, error) => {
				if (status !== 'connected' && status !== 'reconnecting') this.#wrong.push(`${String(status)} is no status`)
				this.told.push(`${status} ${error ?? ''}`)
			},
			lost: (error) => {
				this.told.push(`lost ${String(error)}`)
				live.lost.resolve(error)
			},
			error: (code, message, more = {}) => {
				const { retry_after_ms, cause } = more
				const error = new Error(message, cause === undefined ? {} : { cause })
				return Object.assign(error, { code, ...(retry_after_ms !== undefined && { retry_after_ms }) })
			},
		}
	}

	async #receive(live: Live, message: IncomingMessage): Promise<void> {
		const before = live.queue
		const taking = async (): Promise<void> => {
			await before
			live.mustBeOpen()
			this.received.push(structuredClone(message))
			await Promise.race([this.take(message), live.closed])
			live.mustBeOpen()
			const isKnown = this.taken.some(({ id, chat }) => id === message.id && chat.id === message.chat.id)
			if (!isKnown) this.taken.push(structuredClone(message))
			if (message.cursor !== undefined) this.#cursor = message.cursor
		}
		const result = taking()
		live.queue = result.catch(() => {})
		return result
	}

	/** A channel's config, as the gateway checks it. */
	check(config: object): Joi.ValidationResult<Record<string, unknown>> {
		const own = this.adapter.config?.(Joi) ?? Joi.object()
		return commonConfig.concat(own).unknown().validate(config, { convert: false })
	}

	#config(): object {
		const { value, error } = this.check(this.platform.config)
		must(error === undefined, `config(joi) takes the platform's config: ${error?.message}`)
		return Object.freeze(value)
	}

	#chats(): KnownChat[] {
		const newest = new Map(this.taken.map(({ chat, id }) => [chat.id, id]))
		return [...newest].map(([id, last_id]) => ({ id, last_id, bound_at: new Date(0).toISOString() })).toReversed()
	}
}

/** One connection, with what the gateway holds of it. */
export class Live {
	readonly signal: AbortSignal
	/** Settles with what `lost` was told. */
	readonly lost: PromiseWithResolvers<unknown> = Promise.withResolvers()
	queue: Promise<void> = Promise.resolve()
	/** Rejects when the connection is closed: what is being taken then is not taken. */
	readonly closed: Promise<never>
	isClosed = false
	#connection: Connection | undefined
	readonly #desk: Desk
	readonly #token: string
	readonly #ending = new AbortController()

	constructor(desk: Desk, token: string, signal?: AbortSignal) {
		this.#desk = desk
		this.#token = token
		this.signal = signal ? AbortSignal.any([this.#ending.signal, signal]) : this.#ending.signal
		const { promise, reject } = Promise.withResolvers<never>()
		this.closed = promise
		promise.catch(() => {})
		this.#ending.signal.addEventListener('abort', () => reject(new Error('the connection is closed')))
	}

	get connection(): Connection {
		must(this.#connection, 'connect returns a connection')
		return this.#connection
	}

	async open(): Promise<void> {
		const connecting = this.#desk.adapter.connect(this.#desk.link(this, this.#token))
		this.#connection = await this.#desk.within(connecting, 'connect settles')
	}

	/** As the gateway does it: the signal aborts, then `close`, once. */
	async close(): Promise<void> {
		if (this.isClosed) return
		this.isClosed = true
		this.#ending.abort()
		if (this.#connection) await this.#desk.within(this.#connection.close(), 'close settles', this.#desk.patience_ms * 2)
	}

	mustBeOpen(): void {
		if (this.isClosed) throw new Error('the connection is closed')
	}
}

const POLL_MS = 5

/**
 * Waits until `condition` holds; false where it does not in so many milliseconds. Polls are counted, not the clock: platform
 * and adapter are in this process, so time for which it stands still is time for neither of them.
 */
async function holdsIn(ms: number, condition: () => unknown): Promise<boolean> {
	for (let waited = 0; !(await condition()); waited += POLL_MS) {
		if (waited >= ms) return false
		await new Promise((resolve) => setTimeout(resolve, POLL_MS))
	}
	return true
}

export function nonce(): string {
	return Array.from({ length: 25 }, () => Math.floor(Math.random() * 36).toString(36)).join('')
}
