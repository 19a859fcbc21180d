/** Runs a check in place of the gateway, with its own link and a test platform. */
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
	/** What a correct adapter does. */
	name: string
	/** Applies only if the adapter and its platform have all of these. */
	needs?: readonly Ability[]
	/** Throws if the adapter fails the check. */
	run(harness: Harness): Promise<void>
}

/** Throws if the adapter fails the check. */
export async function runCheck(check: Check, suite: ChannelSuite): Promise<void> {
	const harness = new Harness(suite, await suite.platform())
	try {
		await harness.watched(() => check.run(harness))
	} finally {
		await harness.leave()
	}
}

/** Fails the check unless `condition` holds. `what`: what a correct adapter does. */
export function must(condition: unknown, what: string): asserts condition {
	if (!condition) throw new Error(what)
}

/** Fails a check whose ability is not denied by a flag, although the part that it needs is missing. */
export function has<T>(part: T | undefined, what: string, ability: Ability): T {
	must(part !== undefined, `there is ${what}, or the suite has the flag \`abilities: { ${ability}: false }\``)
	return part
}

export function same(found: unknown, wanted: unknown, what: string): void {
	if (!isDeepStrictEqual(found, wanted)) {
		throw new Error(`${what}; expected ${JSON.stringify(wanted)}, found ${JSON.stringify(found)}`)
	}
}

export class Harness {
	readonly adapter: ChannelAdapter
	readonly platform: TestPlatform
	/** Every message passed to `receive`, in order, accepted or not. */
	readonly received: IncomingMessage[] = []
	/** Accepted messages, each id once, as in the gateway. */
	readonly taken: IncomingMessage[] = []
	/** Everything reported to the link: statuses, losses, log lines. */
	readonly told: string[] = []
	/** Called for each message, which is accepted unless this throws. */
	take: (message: IncomingMessage) => unknown = () => {}
	readonly #suite: ChannelSuite
	readonly patience_ms: number
	readonly abilities: NonNullable<ChannelSuite['abilities']>
	readonly #live = new Set<Live>()
	#cursor: string | null = null
	/** Violations of the link's contract. An error thrown by the link would only reach the adapter. */
	readonly #wrong: string[] = []
	#hasLeft = false
	#elsewhere: Harness | undefined

	constructor(suite: ChannelSuite, platform: TestPlatform) {
		this.adapter = suite.adapter
		this.platform = platform
		this.#suite = suite
		this.abilities = suite.abilities ?? {}
		this.patience_ms = suite.patience_ms ?? 60_000
	}

	/** Connects as the gateway does, optionally with another token or signal. */
	async connect({ token = this.platform.token, signal }: { token?: string; signal?: AbortSignal } = {}): Promise<Live> {
		const live = new Live(this, token, signal)
		this.#live.add(live)
		await live.open()
		return live
	}

	/** Connects when the connection cannot last: `connect` fails, or the connection is lost. */
	async connectInVain(what: string): Promise<void> {
		let live: Live
		try {
			live = await this.connect()
		} catch (error) {
			must((error as Partial<ChannelError>).code !== 'refused', 'connect is not refused if a retry may succeed')
			return
		}
		await this.within(live.lost.promise, what)
		await live.close()
	}

	/** Like the gateway, repeats on the next connection what failed on a lost one. */
	async afterLoss<T>(live: Live, work: (live: Live) => Promise<T>): Promise<T> {
		try {
			return await work(live)
		} catch (error) {
			const { code, message } = error as Partial<ChannelError>
			must(
				code === undefined || code === 'failed',
				`the next request works, or may work later; it is ${code}: ${message}`,
			)
			await this.within(live.lost.promise, `\`lost\` is called when nothing can be sent any more (${message})`)
			await live.close()
			return work(await this.connect())
		}
	}

	/** Another channel of the same adapter, on a separate platform. */
	async connectElsewhere(): Promise<{ harness: Harness; live: Live }> {
		this.#elsewhere ??= new Harness(this.#suite, await this.#suite.platform())
		return { harness: this.#elsewhere, live: await this.#elsewhere.connect() }
	}

	/** Like the gateway, closes a lost connection and reconnects, until `leave`. Returns a function for the current connection. */
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

	/** Waits until `condition` holds. `what`: what a correct adapter does. */
	async until(condition: () => unknown, what: string): Promise<void> {
		const ms = this.patience_ms
		if (!(await holdsIn(ms, condition))) throw new Error(`${what}; not observed within ${ms} ms`)
	}

	/** Settles as `promise` does, or throws if that takes too long. */
	async within<T>(promise: Promise<T>, what: string, ms = this.patience_ms): Promise<T> {
		let isSettled = false
		const settle = (): void => void (isSettled = true)
		promise.then(settle, settle)
		if (!(await holdsIn(ms, () => isSettled))) throw new Error(`${what}; timed out after ${ms} ms`)
		return promise
	}

	/** Waits until a message with this text was accepted, and returns it. */
	async waitForMessage(text: string): Promise<IncomingMessage> {
		const find = (): IncomingMessage | undefined => this.taken.find((message) => message.text === text)
		await this.until(find, `a message with the text ${JSON.stringify(text)} is received`)
		return find() as IncomingMessage
	}

	/** A chat of that kind, or of the other kind if the platform has none. */
	async chat(kind: ChatKind = 'private'): Promise<TestChat> {
		const chat =
			(await this.platform.chat(kind)) ?? (await this.platform.chat(kind === 'private' ? 'group' : 'private'))
		must(chat, 'a platform for tests has chats of at least one kind')
		return chat
	}

	/** A message with a new nonce, in the last format of `can.formats` unless `more` has another. */
	message(chat: TestChat, text: string, more: Partial<OutgoingMessage> = {}): OutgoingMessage {
		const markup: Markup = this.adapter.can.formats.at(-1)?.markup ?? 'plain'
		return { chat: { id: chat.id, kind: chat.kind }, text, markup, nonce: nonce(), ...more }
	}

	/** The error that a call throws; the check fails if it does not throw. */
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
		must(error instanceof Error && error.message !== '', `the thrown value is an Error with a message; ${what}`)
		must(!`${error.message} ${error.stack}`.includes(this.platform.token), 'no error shows the token')
		return error
	}

	/** Runs a check, and fails it for an unhandled rejection, which would end a process. */
	async watched<T>(run: () => Promise<T>): Promise<T> {
		const unhandled: unknown[] = []
		const note = (error: unknown): void => void unhandled.push(error)
		process.on('unhandledRejection', note)
		try {
			const result = await run()
			must(unhandled.length === 0, `a rejection was left unhandled: ${String(unhandled[0])}`)
			const shown = this.told.find((line) => line.includes(this.platform.token))
			must(shown === undefined, 'neither log nor status show the token')
			same(this.#wrong, [], 'the link is used according to the contract')
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

	/** The link of one connection. Its state belongs to the harness, since it outlives connections. */
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
				taken.catch(() => {}) // as in the gateway: an ignored rejection loses nothing, since the message is delivered again
				return taken
			},
			advance: async (cursor) => {
				await live.queue
				live.mustBeOpen()
				this.#cursor = cursor
			},
			status: (status, error) => {
				if (status !== 'connected' && status !== 'reconnecting') this.#wrong.push(`${String(status)} is not a status`)
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

	/** Validates a channel's config as the gateway does. */
	check(config: object): Joi.ValidationResult<Record<string, unknown>> {
		const own = this.adapter.config?.(Joi) ?? Joi.object()
		return commonConfig.concat(own).unknown().validate(config, { convert: false })
	}

	#config(): object {
		const { value, error } = this.check(this.platform.config)
		must(error === undefined, `config(joi) accepts the platform's config: ${error?.message}`)
		return Object.freeze(value)
	}

	#chats(): KnownChat[] {
		const newest = new Map(this.taken.map(({ chat, id }) => [chat.id, id]))
		return [...newest].map(([id, last_id]) => ({ id, last_id, bound_at: new Date(0).toISOString() })).toReversed()
	}
}

/** One connection, with its state in the gateway. */
export class Live {
	readonly signal: AbortSignal
	/** Settles with the error passed to `lost`. */
	readonly lost: PromiseWithResolvers<unknown> = Promise.withResolvers()
	queue: Promise<void> = Promise.resolve()
	/** Rejects when the connection is closed: a message in progress is then not accepted. */
	readonly closed: Promise<never>
	isClosed = false
	#connection: Connection | undefined
	readonly #harness: Harness
	readonly #token: string
	readonly #ending = new AbortController()

	constructor(harness: Harness, token: string, signal?: AbortSignal) {
		this.#harness = harness
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
		const connecting = this.#harness.adapter.connect(this.#harness.link(this, this.#token))
		this.#connection = await this.#harness.within(connecting, 'connect settles')
	}

	/** Like the gateway, aborts the signal and then calls `close`, once. */
	async close(): Promise<void> {
		if (this.isClosed) return
		this.isClosed = true
		this.#ending.abort()
		if (this.#connection)
			await this.#harness.within(this.#connection.close(), 'close settles', this.#harness.patience_ms * 2)
	}

	mustBeOpen(): void {
		if (this.isClosed) throw new Error('the connection is closed')
	}
}

const POLL_MS = 5

/**
 * Waits until `condition` holds; false if it does not within `ms`. Counts polls instead of the clock: platform and adapter are in this
 * process, so time in which it cannot run does not count.
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
