/**
 * A Discord server for one bot: the REST API and the gateway's WebSocket, as the developer documentation describes them. It outlives
 * the gateways that connect to it. `say` sends messages of people; `fail`, `cut`, `close`, `tellToReconnect`, `invalidate` and `deaf`
 * cause faults.
 */
import { createServer } from 'node:http'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { WebSocketServer } from 'ws'
import { unlessReset } from './loopback.ts'
import type { WebSocket } from 'ws'

export interface User {
	id: string
	username: string
	global_name: string | null
	bot?: boolean
}

export interface Message {
	id: string
	channel_id: string
	author: User
	content: string
	type: number
	timestamp: string
	mentions: User[]
	mention_roles: string[]
	attachments: object[]
	flags: number
	message_reference?: { message_id: string; channel_id: string }
	webhook_id?: string
	/** Earlier contents of an edited message, oldest first. */
	drafts: string[]
	/** A file that the bot sent. */
	upload?: { name: string; bytes: Buffer }
	/** The request with which the bot sent it. */
	request?: Body
}

export interface Channel {
	id: string
	/** 0 text, 1 direct, 11 thread. */
	type: number
	guild_id?: string
	parent_id?: string
	messages: Message[]
}

// oxlint-disable-next-line typescript/no-explicit-any -- whatever the bot sent
type Body = any

export interface Said {
	from?: User
	/** Starts the message with a mention of the bot. */
	mention?: boolean
	type?: number
	/** False: the message exists, but is not announced to the sessions before `tell`. */
	told?: boolean
	more?: object
}

export interface Failure {
	method: string
	/** Matches the path without the API version. */
	path: RegExp
	/** Only requests with a file. */
	isUpload?: true
	/** Default 1. */
	times?: number
	/** `before`, `after`: the connection breaks before or after the request is executed. `never`: there is no answer. */
	how: 'before' | 'after' | 'never' | { status: number; body?: object | string; headers?: Record<string, string> }
}

export interface Call {
	method: string
	path: string
	query: URLSearchParams
	body: Body
	status: number
}

export interface DiscordServer {
	/** For `config.api_root`. */
	readonly url: string
	/** The token that is accepted; may be changed. */
	token: string
	readonly bot: User
	/** Files below `/files/`, by name; `never`: a request for it is not answered. */
	readonly files: Map<string, Buffer | 'never'>
	/** The name in each request for a file so far. */
	readonly loads: string[]
	readonly guild_id: string
	/** The bot's own role in its server. */
	readonly role_id: string
	/** REST requests that were answered, oldest first. */
	readonly calls: Call[]
	/** Payloads that the bot sent to the gateway. */
	readonly received: { op: number; d: Body }[]
	/** The remaining session starts of today. */
	remaining: number
	/** Whether the bot has the privileged intent; without it, an IDENTIFY that requests it is closed with 4014. */
	contentAllowed: boolean
	/** Accepts connections, but sends nothing, while true. */
	silent: boolean
	/** Whether messages that are read contain their nonces, which Discord does not guarantee. */
	noncesShown: boolean
	/** Does not acknowledge heartbeats while true. */
	deaf: boolean
	heartbeat_ms: number
	/** A close code for every IDENTIFY. */
	refusal: number | undefined
	addUser(name: string, fields?: Partial<User>): User
	addChannel(fields?: Partial<Channel>): Channel
	/** `told`: whether the thread is announced to the bot. */
	addThread(parent: Channel, told?: boolean): Channel
	addDirect(): Channel
	say(channel: Channel, content: string, said?: Said): Message
	/** Announces a message to the sessions; may be repeated. */
	tell(message: Message): void
	/** Sends any event to the sessions. */
	packet(t: string, d: unknown): void
	/** The bot's messages in a channel, oldest first. */
	written(channel: Channel): Message[]
	fail(failure: Failure): void
	/** True: stops reading the gateway's sockets, including close frames, as if the network had failed. False: reads again. */
	vanish(isGone: boolean): void
	/** Terminates the gateway's sockets without a close frame. */
	cut(): void
	/** Closes idle HTTP connections. */
	hangUp(): void
	close(code: number): void
	tellToReconnect(): void
	/** Forgets the sessions; an attempt to resume one then fails. */
	forget(): void
	/** Forgets the sessions and notifies connected ones. */
	invalidate(): void
	/** Sockets that have a session. */
	readonly connected: number
	/** Open sockets. */
	readonly sockets: number
	/** Requests in progress. */
	readonly requests: number
	stop(): Promise<void>
}

interface Session {
	id: string
	intents: number
	sequence: number
	sent: object[]
	socket: WebSocket | undefined
}

const EPOCH = 1_420_070_400_000n
const MESSAGE_CONTENT = 1 << 15

export async function startDiscord({ port = 0, token = 'test-token.of.a-bot' } = {}): Promise<DiscordServer> {
	let increment = 0n
	let lastMs = 0n
	const snowflake = (): string => {
		const now = BigInt(Date.now()) - EPOCH
		if (now > lastMs) {
			lastMs = now
			increment = 0n
		}
		return String((lastMs << 22n) | increment++)
	}
	const user = (name: string, fields: Partial<User> = {}): User => ({
		id: snowflake(),
		username: name,
		global_name: null,
		...fields,
	})
	const bot = user('helper', { bot: true })
	const guild_id = snowflake()
	const role_id = snowflake()
	const somebody = user('ann', { global_name: 'Ann' })
	const channels = new Map<string, Channel>()
	const sessions = new Map<string, Session>()
	const failures: Failure[] = []
	const nonces = new Map<string, Message>()

	const asChannel = ({ messages, ...channel }: Channel): object => ({
		...channel,
		name: `channel-${channel.id}`,
		last_message_id: messages.at(-1)?.id ?? null,
		...(channel.type === 1 && { recipients: [somebody] }),
		...(channel.type === 11 && { thread_metadata: { archived: false, locked: false, auto_archive_duration: 60 } }),
	})
	const asMessage = (message: Message): object => {
		const { drafts: _, request: __, upload: ___, ...rest } = message
		return {
			...rest,
			tts: false,
			mention_everyone: false,
			edited_timestamp: null,
			pinned: false,
			embeds: [],
		}
	}
	const guild = (): object => {
		const own = [...channels.values()].filter((one) => one.guild_id === guild_id)
		return {
			id: guild_id,
			name: 'a server',
			owner_id: somebody.id,
			roles: [
				{ id: guild_id, name: '@everyone', permissions: '0', position: 0 },
				{ id: role_id, name: 'helper', permissions: '0', position: 1, tags: { bot_id: bot.id } },
			],
			emojis: [],
			features: [],
			members: [],
			presences: [],
			voice_states: [],
			stickers: [],
			channels: own.filter((one) => one.type !== 11).map(asChannel),
			threads: own.filter((one) => one.type === 11 && !hidden.has(one.id)).map(asChannel),
			member_count: 2,
		}
	}
	/** Threads that were not announced to the bot. */
	const hidden = new Set<string>()

	const send = (session: Session, t: string, d: unknown): void => {
		const packet = { op: 0, t, s: ++session.sequence, d }
		session.sent.push(packet)
		session.socket?.send(JSON.stringify(packet))
	}
	const broadcast = (t: string, d: (session: Session) => unknown): void => {
		for (const session of sessions.values()) send(session, t, d(session))
	}
	const tell = (message: Message): void => {
		const channel = channels.get(message.channel_id)
		broadcast('MESSAGE_CREATE', ({ intents }) => {
			const isReadable =
				(intents & MESSAGE_CONTENT) !== 0 ||
				channel?.type === 1 ||
				message.author.id === bot.id ||
				message.mentions.some((one) => one.id === bot.id)
			return {
				...asMessage(message),
				...(!isReadable && { content: '', attachments: [] }),
				...(message.request?.nonce !== undefined && { nonce: message.request.nonce }),
				...(channel?.guild_id !== undefined && { guild_id: channel.guild_id, member: { roles: [], nick: null } }),
			}
		})
	}
	const add = (channel: Channel, fields: Partial<Message> & Pick<Message, 'author' | 'content'>): Message => {
		const message: Message = {
			id: snowflake(),
			channel_id: channel.id,
			type: fields.message_reference ? 19 : 0,
			timestamp: new Date().toISOString(),
			mentions: [],
			mention_roles: [],
			attachments: [],
			flags: 0,
			drafts: [],
			...fields,
		}
		channel.messages.push(message)
		return message
	}

	// --- REST

	const calls: Call[] = []
	const answer = (method: string, path: string, query: URLSearchParams, body: Body): [status: number, body: object] => {
		if (path === '/gateway/bot') {
			const url = `ws://127.0.0.1:${(http.address() as AddressInfo).port}/gateway`
			const limit = { total: 1000, remaining: server.remaining, reset_after: 60_000, max_concurrency: 1 }
			return [200, { url, shards: 1, session_start_limit: limit }]
		}
		if (path === '/users/@me') return [200, bot]
		const [, id = '', rest = ''] = /^\/channels\/(\d+)(.*)$/.exec(path) ?? []
		const channel = channels.get(id)
		if (!channel) return [404, { message: 'Unknown Channel', code: 10003 }]
		if (rest === '' && method === 'GET') return [200, asChannel(channel)]
		if (rest === '/typing' && method === 'POST') return [204, {}]
		if (rest === '/messages' && method === 'GET') {
			const after = BigInt(query.get('after') ?? 0)
			const limit = Math.min(100, Number(query.get('limit') ?? 50))
			const newer = channel.messages.filter((one) => BigInt(one.id) > after).slice(0, limit)
			const shown = (one: Message): object => ({
				...asMessage(one),
				...(server.noncesShown && one.request && { nonce: one.request.nonce }),
			})
			return [200, newer.toReversed().map(shown)]
		}
		if (rest === '/messages' && method === 'POST') {
			const key = `${id} ${body.nonce}`
			const same = body.nonce !== undefined && body.enforce_nonce ? nonces.get(key) : undefined
			if (same) return [200, { ...asMessage(same), nonce: body.nonce }]
			const wrong = body.upload ? wrongFile(body.upload) : wrongText(body.content)
			if (wrong) return wrong
			const target = body.message_reference?.message_id
			const message_reference = channel.messages.some((one) => one.id === target)
				? { message_id: target as string, channel_id: id }
				: undefined
			const message = add(channel, {
				author: bot,
				content: (body.content ?? '').trim(),
				...(body.upload && { upload: body.upload, attachments: [attachmentOf(body.upload)] }),
				flags: body.flags ?? 0,
				request: body,
				...(message_reference && { message_reference }),
			})
			nonces.set(key, message)
			tell(message)
			return [200, { ...asMessage(message), nonce: body.nonce }]
		}
		const message = channel.messages.find((one) => rest === `/messages/${one.id}`)
		if (!message) return [404, { message: 'Unknown Message', code: 10008 }]
		if (method !== 'PATCH') return [405, { message: '405: Method Not Allowed', code: 0 }]
		const wrong = wrongText(body.content)
		if (wrong) return wrong
		message.drafts.push(message.content)
		message.content = body.content.trim()
		return [200, asMessage(message)]
	}
	let requests = 0
	const onRequest = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
		requests++
		response.on('close', () => requests--)
		const { pathname, searchParams } = new URL(request.url ?? '', 'http://localhost')
		if (pathname.startsWith('/files/')) {
			const name = pathname.slice('/files/'.length)
			server.loads.push(name)
			const bytes = server.files.get(name)
			if (bytes === 'never') return
			return void response.writeHead(bytes ? 200 : 404).end(bytes ?? 'no such file')
		}
		const path = pathname.replace(/^\/v10/, '')
		const method = request.method ?? ''
		const chunks = await request.toArray()
		const bytes = Buffer.concat(chunks as Buffer[])
		const type = request.headers['content-type'] ?? ''
		const body: Body = type.startsWith('multipart/')
			? await formOf(type, bytes)
			: bytes.length === 0
				? undefined
				: JSON.parse(String(bytes))
		const failure = failures.find(
			(one) => one.method === method && one.path.test(path) && (!one.isUpload || body?.upload !== undefined),
		)
		if (failure) {
			failure.times = (failure.times ?? 1) - 1
			if (failure.times <= 0) failures.splice(failures.indexOf(failure), 1)
		}
		const reply = (status: number, data: object | string, headers: Record<string, string> = {}): void => {
			calls.push({ method, path, query: searchParams, body, status })
			const type = typeof data === 'string' || status === 204 ? 'text/html' : 'application/json'
			response.writeHead(status, { 'content-type': type, ...headers })
			response.end(status === 204 ? undefined : typeof data === 'string' ? data : JSON.stringify(data))
		}
		if (server.silent || failure?.how === 'never') return
		if (failure?.how === 'before') return void request.socket.destroy()
		if (failure && failure.how !== 'after')
			return reply(failure.how.status, failure.how.body ?? {}, failure.how.headers)
		if (request.headers.authorization !== `Bot ${server.token}`)
			return reply(401, { message: '401: Unauthorized', code: 0 })
		const [status, data] = answer(method, path, searchParams, body)
		if (failure) {
			request.socket.destroy()
			return
		}
		reply(status, data)
	}
	const http = createServer((request, response) => void onRequest(request, response).catch(unlessReset))

	// --- gateway

	const received: DiscordServer['received'] = []
	const sockets = new WebSocketServer({ server: http, path: '/gateway' })
	sockets.on('connection', (socket) => {
		let session: Session | undefined
		const leave = (): void => {
			if (session?.socket === socket) session.socket = undefined
		}
		socket.on('error', () => {})
		socket.on('close', leave)
		socket.on('message', (data) => {
			const { op, d } = JSON.parse(String(data)) as { op: number; d: Body }
			received.push({ op, d })
			if (op === 1 && !server.deaf) socket.send(JSON.stringify({ op: 11 }))
			if (op === 2) {
				if (server.refusal !== undefined) return socket.close(server.refusal)
				if (d.token !== server.token) return socket.close(4004)
				if (!server.contentAllowed && d.intents & MESSAGE_CONTENT) return socket.close(4014)
				session = { id: snowflake(), intents: d.intents, sequence: 0, sent: [], socket }
				sessions.set(session.id, session)
				const { port: own } = http.address() as AddressInfo
				send(session, 'READY', {
					v: 10,
					user: { ...bot, discriminator: '0' },
					guilds: [{ id: guild_id, unavailable: true }],
					session_id: session.id,
					resume_gateway_url: `ws://127.0.0.1:${own}/gateway`,
					application: { id: bot.id, flags: 0 },
					shard: d.shard,
				})
				send(session, 'GUILD_CREATE', guild())
			}
			if (op === 6) {
				session = sessions.get(d.session_id)
				if (!session || d.token !== server.token) return socket.send(JSON.stringify({ op: 9, d: false }))
				session.socket = socket
				for (const packet of session.sent.slice(d.seq)) socket.send(JSON.stringify(packet))
				send(session, 'RESUMED', {})
			}
		})
		if (!server.silent) socket.send(JSON.stringify({ op: 10, d: { heartbeat_interval: server.heartbeat_ms } }))
	})
	const live = (): Session[] => [...sessions.values()].filter((one) => one.socket)

	await new Promise<void>((resolve) => http.listen(port, '127.0.0.1', resolve))
	const server: DiscordServer = {
		url: `http://127.0.0.1:${(http.address() as AddressInfo).port}`,
		token,
		bot,
		files: new Map(),
		loads: [],
		guild_id,
		role_id,
		calls,
		received,
		remaining: 1000,
		contentAllowed: true,
		silent: false,
		noncesShown: false,
		deaf: false,
		heartbeat_ms: 41_250,
		refusal: undefined,
		addUser: user,
		addChannel(fields = {}) {
			const channel: Channel = { id: snowflake(), type: 0, guild_id, messages: [], ...fields }
			channels.set(channel.id, channel)
			if (channel.type === 0) broadcast('CHANNEL_CREATE', () => asChannel(channel))
			return channel
		},
		addThread(parent, told = true) {
			const thread = server.addChannel({ type: 11, parent_id: parent.id })
			if (told) broadcast('THREAD_CREATE', () => ({ ...asChannel(thread), newly_created: true }))
			else hidden.add(thread.id)
			return thread
		},
		addDirect() {
			const channel: Channel = { id: snowflake(), type: 1, messages: [] }
			channels.set(channel.id, channel)
			return channel
		},
		say(channel, content, { from = somebody, mention = false, told = true, type, more } = {}) {
			const message = add(channel, {
				author: from,
				content: mention ? `<@${bot.id}> ${content}` : content,
				...(mention && { mentions: [bot] }),
				...(type !== undefined && { type }),
				...more,
			})
			if (told) tell(message)
			return message
		},
		tell,
		packet: (t, d) => broadcast(t, () => d),
		written: (channel) => channel.messages.filter((one) => one.author.id === bot.id),
		fail: (failure) => void failures.push({ ...failure }),
		vanish: (isGone) => sockets.clients.forEach((socket) => (isGone ? socket.pause() : socket.resume())),
		cut: () => live().forEach(({ socket }) => socket?.terminate()),
		hangUp: () => http.closeIdleConnections(),
		close: (code) => live().forEach(({ socket }) => socket?.close(code)),
		tellToReconnect: () => live().forEach(({ socket }) => socket?.send(JSON.stringify({ op: 7 }))),
		forget: () => sessions.clear(),
		invalidate() {
			const connected = live()
			sessions.clear()
			for (const { socket } of connected) socket?.send(JSON.stringify({ op: 9, d: false }))
		},
		get connected() {
			return live().length
		},
		get sockets() {
			return sockets.clients.size
		},
		get requests() {
			return requests
		},
		async stop() {
			for (const socket of sockets.clients) socket.terminate()
			sockets.close()
			http.closeAllConnections()
			await new Promise((resolve) => http.close(resolve))
		},
	}
	return server
}

/** A form with one file: `payload_json`, and `files[0]`. */
async function formOf(type: string, bytes: Buffer): Promise<Body> {
	const form = await new Response(new Uint8Array(bytes), { headers: { 'content-type': type } }).formData()
	const file = form.get('files[0]') as File
	const upload = { name: file.name, bytes: Buffer.from(await file.bytes()) }
	return { ...JSON.parse(String(form.get('payload_json'))), upload }
}

function attachmentOf({ name, bytes }: NonNullable<Message['upload']>): object {
	return {
		id: '1',
		filename: name.replaceAll(/[^\p{L}\p{N}._-]/gu, '_'),
		size: bytes.length,
		url: 'https://cdn.invalid/1',
	}
}

function wrongFile({ bytes }: NonNullable<Message['upload']>): [number, object] | undefined {
	if (bytes.length <= 10 * 1024 * 1024) return undefined
	return [413, { message: 'Request entity too large', code: 40005 }]
}

function wrongText(content: unknown): [number, object] | undefined {
	if (typeof content !== 'string' || content.trim() === '')
		return [400, { message: 'Cannot send an empty message', code: 50006 }]
	if (content.length <= 2000) return undefined
	const error = { code: 'BASE_TYPE_MAX_LENGTH', message: 'Must be 2000 or fewer in length.' }
	return [400, { message: 'Invalid Form Body', code: 50035, errors: { content: { _errors: [error] } } }]
}
