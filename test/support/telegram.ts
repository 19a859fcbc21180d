/**
 * A Bot API server for tests, on a free port, which outlives the gateways that use it. It behaves like Telegram's: updates are kept
 * until a later one is requested, ids are assigned in the same way, and errors have the same texts. `fault` causes failures.
 *
 *     const telegram = await startTelegram()
 *     t.teardown(() => telegram.stop())
 *     const ada = telegram.person(42, 'Ada')
 *     telegram.say(ada, '/start')
 *     const answer = await telegram.waitFor((message) => message.chat.id === 42)
 */
import { randomBytes } from 'node:crypto'
import { createServer } from 'node:http'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { listenOnLoopback } from './loopback.ts'
import { eventually, openWatch } from './wait.ts'

export interface TelegramChat {
	id: number
	type: 'private' | 'group' | 'supergroup'
	title?: string
	first_name?: string
}

/** A message that the bot sent. */
export interface SentMessage {
	message_id: number
	chat: TelegramChat
	/** The text as people see it: HTML is rendered, Rich Markdown is unchanged. */
	text: string
	markup: 'markdown' | 'html' | 'plain'
	thread_id?: number
	reply_to?: number
	/** A message with a file has no text. */
	file?: { name: string; bytes: Buffer; as: 'photo' | 'document' }
	/** All its texts, oldest first. */
	texts: string[]
}

export interface ApiCall {
	method: string
	// oxlint-disable-next-line typescript/no-explicit-any -- tests read arbitrary payloads
	payload: any
}

export type Fault =
	/** An error of the Bot API; the call is not executed. */
	| { error_code: number; description: string; parameters?: Record<string, number> }
	/** The connection breaks before or after the call is executed. */
	| 'cut before'
	| 'cut after'
	/** The call is executed, and answered with a proxy's 502. */
	| 'bad gateway'
	/** There is no answer. */
	| 'stall'

export interface TelegramOptions {
	/** Methods that this server does not support. */
	without?: readonly string[]
	port?: number
	/** The token of a bot in an older home: all ids are then higher than earlier ones. */
	knownToken?: string
}

export interface TestTelegram {
	url: string
	token: string
	bot: { id: number; username: string }
	/** A private chat with a person. */
	person(id: number, first_name: string): TelegramChat
	/** A supergroup if the id is below -1,000,000,000,000, otherwise a basic group. */
	group(id: number, title: string): TelegramChat
	/** Sends a message of a person, with entities for mentions and commands. Returns the update, which may be pushed again. */
	say(chat: TelegramChat, text: string, more?: Record<string, unknown>): Update
	/** Delivers an update, possibly again; without `update_id` it gets the next id. */
	push(update: Partial<Update>): Update
	/** Removes an unconfirmed update. */
	drop(update: Update): void
	/** The bot's messages, oldest first. */
	messages(chat?: TelegramChat): SentMessage[]
	drafts: { chat_id: number; draft_id: number; text: string }[]
	/** Downloadable files by `file_id`; `never`: requests for it are not answered. */
	files: Map<string, Buffer | 'never'>
	/** The `file_id` of each request for a file so far. */
	loads: string[]
	calls: ApiCall[]
	/** Unconfirmed updates. */
	pending(): Update[]
	/** Makes the next calls of this method fail, one fault each. */
	fault(method: string, ...faults: Fault[]): void
	/** Open connections. */
	open(): number
	/** Requests without an answer so far. */
	busy(): number
	/** Stops answering requests. */
	silence(): void
	/** Revokes the token. */
	revoke(): void
	/** The number of calls without arguments, which only probe whether a method exists. */
	asked(): number
	/** Destroys all open connections, and returns their number. */
	cut(): number
	/** Settles with the first message, or call, for which `is` returns true. */
	waitFor(is: (message: SentMessage) => boolean): Promise<SentMessage>
	called(is: (call: ApiCall) => boolean): Promise<ApiCall>
	/** Ends the current poll, as if another process polled the bot. */
	conflict(): void
	/** An empty URL removes the webhook. */
	setWebhook(url: string): void
	stop(): Promise<void>
}

// oxlint-disable-next-line typescript/no-explicit-any -- the Bot API has too many types to repeat
export type Update = { update_id: number } & Record<string, any>

const SUPERGROUPS_BELOW = -1_000_000_000_000
const RICH_LENGTH = 32_768
const LENGTH = 4096

export async function startTelegram({
	without = [],
	port = 0,
	knownToken,
}: TelegramOptions = {}): Promise<TestTelegram> {
	const token = knownToken ?? `100200:AAtest-token_of-bot-${randomBytes(6).toString('hex')}`
	const idsSoFar = knownToken === undefined ? 0 : 1_000
	const sent: SentMessage[] = []
	let asked = 0
	let isSilent = false
	let isRevoked = false
	const faults = new Map<string, Fault[]>()
	const wire = await listen(port, answer, (path) => {
		const [, shown, file_id = ''] = /^\/file\/bot([^/]*)\/files\/(.+)$/.exec(path) ?? []
		if (shown !== token) return undefined
		const id = decodeURIComponent(file_id)
		telegram.loads.push(id)
		return telegram.files.get(id)
	})
	const chats = openChats(idsSoFar)
	const feed = openUpdates(idsSoFar)
	const watch = openWatch()
	const methods = methodsOf()

	const telegram: TestTelegram = {
		url: wire.url,
		token,
		bot: { id: 100200, username: 'gate_test_bot' },
		drafts: [],
		files: new Map(),
		loads: [],
		calls: [],
		person: (id, first_name) => chats.open({ id, type: 'private', first_name }),
		group: (id, title) => chats.open({ id, type: id < SUPERGROUPS_BELOW ? 'supergroup' : 'group', title }),
		say(chat, text, more = {}) {
			const from = {
				id: chat.type === 'private' ? chat.id : 7,
				is_bot: false,
				first_name: chat.first_name ?? 'Someone',
			}
			const message_id = chats.nextId(chat.id)
			chats.said(chat.id, message_id)
			const message = { message_id, date: seconds(), chat, from, text, entities: entitiesOf(text), ...more }
			return feed.push({ message })
		},
		push: feed.push,
		drop: feed.drop,
		messages: (chat) => sent.filter((message) => !chat || message.chat.id === chat.id),
		pending: feed.pending,
		fault: (method, ...more) => void faults.set(method, [...(faults.get(method) ?? []), ...more]),
		open: wire.open,
		busy: wire.busy,
		silence: () => void (isSilent = true),
		revoke: () => void (isRevoked = true),
		asked: () => asked,
		cut: wire.cut,
		conflict: feed.conflict,
		setWebhook: feed.setWebhook,
		waitFor: (is) =>
			watch.until(
				() => sent.find(is),
				() => `no such message; there are: ${JSON.stringify(sent.map(({ text }) => text))}`,
			),
		called: (is) =>
			watch.until(
				() => telegram.calls.find(is),
				() => `no such call; there are: ${telegram.calls.map(({ method }) => method).join(', ')}`,
			),
		stop: wire.stop,
	}
	return telegram

	async function answer({ token: shown, method, payload, hungUp }: ApiRequest): Promise<ApiAnswer> {
		try {
			if (isSilent) return await stalled(hungUp)
			if (shown !== token || isRevoked) throw new BotError(401, 'Unauthorized')
			// A call without arguments only probes whether the method exists.
			const isReal = method === 'getMe' || Object.keys(payload).length > 0
			if (!isReal) asked++
			const run = without.includes(method) ? undefined : methods[method]
			if (!run) throw new BotError(404, 'Not Found: method not found')
			const fault = isReal ? faults.get(method)?.shift() : undefined
			if (isReal) telegram.calls.push({ method, payload })
			watch.check()
			if (fault === 'cut before') return 'cut'
			if (fault === 'stall') return await stalled(hungUp)
			if (typeof fault === 'object') throw new BotError(fault.error_code, fault.description, fault.parameters)
			const result = await run(payload, hungUp)
			watch.check()
			if (fault === 'cut after') return 'cut'
			if (fault === 'bad gateway') return { status: 502, text: '<html>502 Bad Gateway</html>' }
			return { status: 200, text: JSON.stringify({ ok: true, result }) }
		} catch (error) {
			if (!(error instanceof BotError)) throw error
			const { error_code, message: description, parameters } = error
			return { status: error_code, text: JSON.stringify({ ok: false, error_code, description, parameters }) }
		}
	}

	function methodsOf(): Record<string, Method> {
		return {
			getFile: ({ file_id }) => ({ file_id: String(file_id), file_path: `files/${file_id}` }),
			getMe: () => ({ ...telegram.bot, is_bot: true, first_name: 'Gate' }),
			getUpdates: feed.get,
			deleteWebhook: () => feed.setWebhook(''),
			setMyCommands: () => true,
			sendChatAction: (payload) => chats.get(payload) && true,
			sendMessage: (payload) => add(payload, textOf(payload)),
			sendRichMessage: (payload) => add(payload, richOf(payload)),
			sendMessageDraft: (payload) => draft(payload, textOf(payload)),
			sendRichMessageDraft: (payload) => draft(payload, richOf(payload)),
			sendPhoto: (payload) => add(payload, { text: '', markup: 'plain', file: fileIn(payload, 'photo') }),
			sendDocument: (payload) => add(payload, { text: '', markup: 'plain', file: fileIn(payload, 'document') }),
			editMessageCaption({ caption = '', ...payload }) {
				const message = own(payload)
				if (!message.file) throw new BotError(400, 'Bad Request: there is no caption in the message to edit')
				if (caption === message.text) throw notModified()
				message.text = caption
				message.texts.push(caption)
				return onWire(message)
			},
			editMessageText(payload) {
				const content = payload.rich_message ? richOf(payload) : textOf(payload)
				const message = own(payload)
				if (message.file) throw new BotError(400, 'Bad Request: there is no text in the message to edit')
				if (message.text === content.text && message.markup === content.markup) throw notModified()
				Object.assign(message, content)
				message.texts.push(content.text)
				return onWire(message)
			},
		}
	}

	/** The message that is to be edited. */
	function own(payload: Payload): SentMessage {
		const { id } = chats.get(payload)
		const message = sent.find((one) => one.chat.id === id && one.message_id === payload.message_id)
		if (!message && chats.has(id, payload.message_id)) throw new BotError(400, "Bad Request: message can't be edited")
		if (!message) throw new BotError(400, 'Bad Request: message to edit not found')
		return message
	}

	function add(payload: Payload, content: Content): object {
		const chat = chats.get(payload)
		const { message_thread_id: thread_id, reply_parameters: reply } = payload
		const message: SentMessage = {
			message_id: chats.nextId(chat.id),
			chat,
			...content,
			...(thread_id !== undefined && { thread_id }),
			...(reply && { reply_to: reply.message_id }),
			texts: [content.text],
		}
		if (reply && !chats.has(chat.id, reply.message_id) && reply.allow_sending_without_reply !== true)
			throw new BotError(400, 'Bad Request: message to be replied not found')
		sent.push(message)
		return onWire(message)
	}

	function draft(payload: Payload, { text }: Content): true {
		const { id, type } = chats.get(payload)
		if (type !== 'private') throw new BotError(400, 'Bad Request: method is available only for private chats')
		if (!payload.draft_id) throw new BotError(400, 'Bad Request: draft_id must be non-zero')
		telegram.drafts.push({ chat_id: id, draft_id: payload.draft_id, text })
		return true
	}

	function onWire({ message_id, chat, text, markup }: SentMessage): object {
		const from = { id: telegram.bot.id, is_bot: true, first_name: 'Gate' }
		const content = markup === 'markdown' ? { rich_message: { blocks: [{ type: 'paragraph', text }] } } : { text }
		return { message_id, chat, from, date: seconds(), ...content }
	}
}

/** Settles once the bot's answers contain all words and no update is pending. */
export async function allAnswered(telegram: TestTelegram, words: readonly string[], limit_ms?: number): Promise<void> {
	await eventually(
		() => ({
			missing: words.filter((word) => !telegram.messages().some(({ text }) => text.includes(word))),
			pending: telegram.pending(),
		}),
		({ missing, pending }) => missing.length === 0 && pending.length === 0,
		limit_ms,
	)
}

class BotError extends Error {
	readonly error_code: number
	readonly parameters: Record<string, number> | undefined
	constructor(error_code: number, description: string, parameters?: Record<string, number>) {
		super(description)
		this.error_code = error_code
		this.parameters = parameters
	}
}

// oxlint-disable-next-line typescript/no-explicit-any -- checked by its users
type Payload = Record<string, any>
type Method = (payload: Payload, hungUp: AbortSignal) => unknown
type Content = Pick<SentMessage, 'text' | 'markup' | 'file'>

function notModified(): BotError {
	const why =
		'message is not modified: specified new message content and reply markup are exactly the same as a current content and reply markup of the message'
	return new BotError(400, `Bad Request: ${why}`)
}

function fileIn(payload: Payload, as: 'photo' | 'document'): NonNullable<SentMessage['file']> {
	const { name, bytes } = (payload.files?.[payload[as]] ?? {}) as { name?: string; bytes?: Buffer }
	if (name === undefined || !bytes?.length) throw new BotError(400, 'Bad Request: file must be non-empty')
	return { name, bytes, as }
}

/** The payload of a form, in which numbers and objects are JSON; files have the names by which other fields refer to them. */
async function formOf(type: string, body: Buffer): Promise<Payload> {
	const form = await new Response(new Uint8Array(body), { headers: { 'content-type': type } }).formData()
	const payload: Payload = {}
	const files: Payload = {}
	for (const [key, value] of form) {
		if (typeof value !== 'string')
			files[`attach://${key}`] = { name: value.name, bytes: Buffer.from(await value.bytes()) }
		else payload[key] = /^(?:-?\d+$|\{|\[)/.test(value) ? JSON.parse(value) : value
	}
	return { ...payload, files }
}

interface ApiRequest {
	token: string
	method: string
	payload: Payload
	/** Aborts if the client disconnects before it has its answer. */
	hungUp: AbortSignal
}

type ApiAnswer = 'cut' | { status: number; text: string }

function stalled(hungUp: AbortSignal): Promise<'cut'> {
	return new Promise((resolve) => hungUp.addEventListener('abort', () => resolve('cut')))
}

function openChats(idsSoFar: number) {
	const chats = new Map<number, TelegramChat>()
	/** Each supergroup has its own counter; all other chats share one. */
	const counters = new Map<number, number>()
	const messages = new Set<string>()
	const counterOf = (id: number): number => (id < SUPERGROUPS_BELOW ? id : 0)
	return {
		open(chat: TelegramChat): TelegramChat {
			chats.set(chat.id, chat)
			return chat
		},
		get({ chat_id }: Payload): TelegramChat {
			if (chat_id === undefined) throw new BotError(400, 'Bad Request: chat_id is empty')
			const chat = chats.get(Number(chat_id))
			if (!chat) throw new BotError(400, 'Bad Request: chat not found')
			return chat
		},
		nextId(chat_id: number): number {
			const id = (counters.get(counterOf(chat_id)) ?? idsSoFar) + 1
			counters.set(counterOf(chat_id), id)
			return id
		},
		said: (chat_id: number, message_id: number) => void messages.add(`${chat_id}:${message_id}`),
		has: (chat_id: number, message_id: number) => messages.has(`${chat_id}:${message_id}`),
	}
}

function openUpdates(idsSoFar: number) {
	let updates: Update[] = []
	let newest = 1000 + idsSoFar
	let webhook = ''
	let poll: { wake(): void; fail(error: BotError): void } | undefined
	const terminated = new BotError(
		409,
		'Conflict: terminated by other getUpdates request; make sure that only one bot instance is running',
	)
	return {
		push(update: Partial<Update>): Update {
			const whole = { update_id: newest + 1, ...update } as Update
			newest = Math.max(newest, whole.update_id)
			updates.push(whole)
			poll?.wake()
			return whole
		},
		drop: (update: Update) => void (updates = updates.filter((one) => one !== update)),
		pending: () => [...updates],
		conflict: () => poll?.fail(terminated),
		setWebhook(url: string): true {
			webhook = url
			if (url !== '') poll?.fail(terminated)
			return true
		},
		async get(
			{ offset = 0, limit = 100, timeout = 0, allowed_updates }: Payload,
			hungUp: AbortSignal,
		): Promise<Update[]> {
			if (webhook !== '')
				throw new BotError(
					409,
					"Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first",
				)
			poll?.fail(terminated)
			const wanted = (update: Update): boolean => allowed_updates?.some((kind: string) => kind in update) ?? true
			updates = updates.filter((update) => update.update_id >= offset && wanted(update))
			if (updates.length === 0) {
				const { promise, resolve, reject } = Promise.withResolvers<void>()
				const mine = { wake: resolve, fail: reject }
				poll = mine
				const timer = setTimeout(resolve, timeout * 1000)
				hungUp.addEventListener('abort', () => resolve())
				await promise.finally(() => {
					clearTimeout(timer)
					if (poll === mine) poll = undefined
				})
			}
			updates = updates.filter(wanted)
			return updates.slice(0, limit)
		},
	}
}

async function listen(
	port: number,
	answer: (request: ApiRequest) => Promise<ApiAnswer>,
	file: (path: string) => Buffer | 'never' | undefined,
) {
	const sockets = new Set<Socket>()
	let busy = 0
	const server = createServer((request, response) => void take(request, response))
	server.on('connection', (socket) => {
		sockets.add(socket)
		socket.once('close', () => sockets.delete(socket))
	})
	const { url, stop } = await listenOnLoopback(server, port)
	return {
		url,
		open: () => sockets.size,
		busy: () => busy,
		cut(): number {
			const count = sockets.size
			for (const socket of sockets) socket.destroy()
			return count
		},
		stop,
	}

	async function take(request: IncomingMessage, response: ServerResponse): Promise<void> {
		const gone = new AbortController()
		busy++
		response.once('close', () => {
			busy--
			gone.abort()
		})
		let body: Buffer
		try {
			body = Buffer.concat(await request.toArray())
		} catch {
			return // cut in the middle of a request
		}
		if (request.url?.startsWith('/file/')) {
			const bytes = file(request.url)
			if (bytes === 'never') return
			return void response.writeHead(bytes ? 200 : 404).end(bytes ?? 'no such file')
		}
		const [, token = '', method = ''] = /^\/bot([^/]*)\/(\w+)$/.exec(request.url ?? '') ?? []
		const type = request.headers['content-type'] ?? ''
		const isForm = type.startsWith('multipart/')
		const payload = body.length === 0 ? {} : isForm ? await formOf(type, body) : (JSON.parse(String(body)) as Payload)
		const answered = await answer({ token, method, payload, hungUp: gone.signal })
		if (answered === 'cut') return void request.socket.destroy()
		response.writeHead(answered.status, { 'content-type': 'application/json' }).end(answered.text)
	}
}

function richOf({ rich_message }: Payload): Content {
	const text = rich_message?.markdown
	if (typeof text !== 'string' || text === '') throw new BotError(400, 'Bad Request: rich message is empty')
	if (text.length > RICH_LENGTH) throw new BotError(400, 'Bad Request: rich message is too long')
	return { text, markup: 'markdown' }
}

function textOf({ text = '', parse_mode }: Payload): Content {
	const content: Content =
		parse_mode === 'HTML' ? { text: withoutTags(text), markup: 'html' } : { text, markup: 'plain' }
	if (content.text === '') throw new BotError(400, 'Bad Request: message text is empty')
	if (content.text.length > LENGTH) throw new BotError(400, 'Bad Request: message is too long')
	return content
}

const tags = new Set(['b', 'i', 's', 'u', 'code', 'pre', 'blockquote', 'a'])
const entities: Record<string, string> = { '&lt;': '<', '&gt;': '>', '&quot;': '"', '&amp;': '&' }

/** Throws for what Telegram refuses: unknown tags, unclosed tags, a bare `<`. */
function withoutTags(html: string): string {
	const wrong = (why: string) => new BotError(400, `Bad Request: can't parse entities: ${why}`)
	const open: string[] = []
	const text = html.replace(/<(\/?)([a-z-]*)[^>]*>?/g, (all, slash: string, name: string) => {
		if (!tags.has(name) || !all.endsWith('>')) throw wrong(`Unsupported start tag "${name}"`)
		if (slash === '') open.push(name)
		else if (open.pop() !== name) throw wrong(`Unmatched end tag "${name}"`)
		return ''
	})
	if (open.length > 0) throw wrong(`Can't find end tag corresponding to start tag "${open.at(-1)}"`)
	return text.replace(/&(lt|gt|quot|amp);/g, (all) => entities[all] ?? all)
}

/** Mentions and commands, as a Telegram app marks them. */
function entitiesOf(text: string): object[] {
	return [...text.matchAll(/(?<![\w/@])(@\w{5,}|\/\w+(@\w+)?)/g)].map(({ index: offset, 0: all }) => ({
		type: all.startsWith('@') ? 'mention' : 'bot_command',
		offset,
		length: all.length,
	}))
}

function seconds(): number {
	return Math.floor(Date.now() / 1000)
}
