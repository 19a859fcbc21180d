/**
 * A chat platform for tests, as a separate HTTP server: it outlives gateways, records messages, and fails on demand. Its adapter is
 * the plugin in test/fixtures/channels/room.
 */
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { IncomingMessage as Request, ServerResponse } from 'node:http'
import type { IncomingMessage, KnownChat, Markup, OutgoingMessage } from '../../plugins/channels/adapter.ts'
import type { TestGateway } from './gateway.ts'
import { listenOnLoopback } from './loopback.ts'
import { openWatch } from './wait.ts'

/**
 * The outcome of the next call for a chat. `lost`: the call is executed, but its answer is lost. `cut`: it is not executed, and has no
 * answer. `stall`: it waits for `release`. Otherwise an error code. `on`: the affected kind of call, default `send`.
 */
export interface RoomFault {
	fault: 'lost' | 'cut' | 'stall' | 'format' | 'limited' | 'failed' | 'refused'
	on?: 'send' | 'file' | 'edit' | 'draft' | 'typing' | 'find'
	retry_after_ms?: number
}

export interface ShownMessage {
	id: string
	text: string
	markup: Markup
	reply_to?: string
	after?: string
	nonce: string
	/** Earlier texts, oldest first. */
	before: string[]
}

export interface RoomPlatform {
	url: string
	token: string
	/** Sets the type of channel to which the chat belongs; default `room`. */
	place(chat_id: string, type: string): void
	/** Sends a message of a person; returns the message as delivered. */
	say(chat_id: string, text: string, more?: Partial<IncomingMessage>): IncomingMessage
	/** Delivers a message again. */
	deliver(message: IncomingMessage): void
	/** The bot's messages in a chat as people see them, oldest first. */
	shown(chat_id: string): ShownMessage[]
	/** Waits for at least `count` messages of the bot, and returns them all. */
	shows(chat_id: string, count: number): Promise<ShownMessage[]>
	until(condition: () => boolean, what: string): Promise<void>
	/** Sets the outcomes of the next calls for a chat. */
	failNext(chat_id: string, ...next: RoomFault[]): void
	/** Continues the stalled calls of a chat. */
	release(chat_id: string): void
	/** All calls for a chat in the order of arrival: `send`, `edit`, … */
	calls(chat_id: string): string[]
	drafts(chat_id: string): string[]
	/** Delay of the answer after a call was executed, in milliseconds; default 0. */
	latency_ms: number
	/** Downloadable files by `ref`; `never`: requests for it are not answered before `serve`. */
	files: Map<string, Buffer | 'never'>
	/** The `ref` of each request for a file so far. */
	loads: string[]
	/** Sets a file, and answers the pending requests for it. */
	serve(ref: string, bytes: Buffer): void
	/** The known chats that the gateway passed to the adapter at each connection. */
	known: { type: string; chats: KnownChat[] }[]
	/** Calls for a chat that arrived while another one was in progress, except `typing` and stalled calls. */
	overlaps: string[]
	/** Ends the feeds; the adapter then reconnects. */
	cut(): void
	stop(): Promise<void>
}

/** The files of a home with the adapter. */
export function roomPluginFiles(): Record<string, string> {
	const text = readFileSync(new URL('../fixtures/channels/room/index.js', import.meta.url), 'utf8')
	return { 'plugins/room/index.js': text }
}

/** Adds a channel for the room, and returns its id. */
export async function addRoomChannel(
	gateway: Pick<TestGateway, 'request'>,
	room: RoomPlatform,
	type = 'room',
	config: Record<string, unknown> = {},
): Promise<string> {
	const secret = {
		name: `ROOM_${type.toUpperCase()}_${room.token.slice(-6)}`,
		value: room.token,
		policy_label: 'channel',
	}
	await gateway.request('POST', '/v1/vault/secrets', { body: secret })
	const { status, body } = await gateway.request('POST', '/v1/channels', {
		body: { type, bot_token_ref: secret.name, config: { api_root: room.url, ...config } },
	})
	if (status !== 201) throw new Error(`the channel was refused: ${status} ${JSON.stringify(body)}`)
	return body.id
}

/** Binds a chat to an agent. */
export async function bindChat(
	gateway: Pick<TestGateway, 'request'>,
	channel_id: string,
	agent_id: string,
	external_chat_id: string,
): Promise<string> {
	const { status, body } = await gateway.request('POST', '/v1/channels/pair', {
		body: { agent_id, channel_id, external_chat_id },
	})
	if (status !== 200 && status !== 201) throw new Error(`not bound: ${status} ${JSON.stringify(body)}`)
	return body.binding_id
}

let rooms = 0

export async function startRoomPlatform(): Promise<RoomPlatform> {
	const token = `room-token-${process.pid}-${String(++rooms).padStart(6, '0')}`
	const feeds = new Map<string, { lines: string[]; readers: Set<ServerResponse> }>()
	const places = new Map<string, string>()
	const messages: (ShownMessage & { chat: string })[] = []
	const calls: { chat: string; what: string }[] = []
	const drafts: { chat: string; text: string }[] = []
	const failures: { chat: string; failure: RoomFault }[] = []
	const stalled: { chat: string; resume: () => void }[] = []
	const inProgress = new Map<string, string>()
	const overlaps: string[] = []
	const watch = openWatch()
	/** Requests for files. */
	const unanswered = new Set<{ ref: string; answer: () => void }>()
	let said = 0

	const feedOf = (type: string) => {
		const feed = feeds.get(type) ?? { lines: [], readers: new Set() }
		feeds.set(type, feed)
		return feed
	}
	const push = (message: IncomingMessage): void => {
		const { lines, readers } = feedOf(places.get(message.chat.id) ?? 'room')
		const line = `${JSON.stringify({ ...message, cursor: String(lines.length + 1) })}\n`
		lines.push(line)
		for (const reader of readers) reader.write(line)
	}
	const act = (what: string, body: OutgoingMessage & { id?: string; mark?: string }): unknown => {
		const chat = body.chat.id
		switch (what) {
			case 'file':
			case 'send': {
				const same = messages.find((one) => one.nonce === body.nonce && one.chat === chat)
				// An adapter that uses `find` does not deduplicate by nonce.
				if (same && !finders.has(chat)) return { id: same.id }
				const { text, markup, nonce, reply_to, after } = body
				const id = `s${messages.length + 1}`
				messages.push({
					chat,
					id,
					text,
					markup,
					nonce,
					before: [],
					...(reply_to !== undefined && { reply_to }),
					...(after !== undefined && { after }),
				})
				return { id }
			}
			case 'edit': {
				const message = messages.find((one) => one.id === body.id)
				if (!message) return { code: 'refused', message: 'there is no such message' }
				message.before.push(message.text)
				Object.assign(message, { text: body.text, markup: body.markup })
				return {}
			}
			case 'find': {
				const found = messages.find((one) => one.chat === chat && one.text === body.text && one.nonce === body.nonce)
				return { found: body.mark === 'marked' && found ? { id: found.id } : undefined }
			}
			case 'draft':
				drafts.push({ chat, text: body.text })
		}
		return {}
	}
	/** Chats of adapters that use `find` instead of nonces. */
	const finders = new Set<string>()

	const serve = async (request: Request, response: ServerResponse): Promise<void> => {
		const { pathname, searchParams } = new URL(request.url ?? '/', 'http://room')
		const what = pathname.slice(1)
		if (request.headers.authorization !== token) return void response.writeHead(401).end('{}')
		if (what === 'updates') {
			const { lines, readers } = feedOf(searchParams.get('type') ?? '')
			response.writeHead(200, { 'content-type': 'application/x-ndjson' })
			response.flushHeaders()
			response.write(lines.slice(Number(searchParams.get('after'))).join(''))
			readers.add(response)
			response.once('close', () => readers.delete(response))
			return
		}
		if (what.startsWith('files/')) {
			const ref = decodeURIComponent(what.slice('files/'.length))
			room.loads.push(ref)
			if (room.files.get(ref) === 'never') {
				const { promise, resolve } = Promise.withResolvers<void>()
				unanswered.add({ ref, answer: resolve })
				watch.check()
				await promise
			}
			const bytes = room.files.get(ref)
			response.writeHead(bytes ? 200 : 404).end(bytes)
			return watch.check()
		}
		let text = ''
		for await (const piece of request.setEncoding('utf8')) text += String(piece)
		if (what === 'known') {
			room.known.push(JSON.parse(text) as RoomPlatform['known'][number])
			watch.check()
			return void response.end('{}')
		}
		const body = JSON.parse(text) as OutgoingMessage
		const chat = body.chat.id
		if (what !== 'typing') {
			const other = inProgress.get(chat)
			if (other !== undefined) overlaps.push(`${what} while ${other} in ${chat}`)
			inProgress.set(chat, what)
			response.once('close', () => inProgress.delete(chat))
		}
		calls.push({ chat, what })
		if (what === 'find') finders.add(chat)
		const at = failures.findIndex((one) => one.chat === chat && (one.failure.on ?? 'send') === what)
		watch.check()
		const failure = at < 0 ? undefined : failures.splice(at, 1)[0]?.failure
		if (failure?.fault === 'cut') return void request.socket.destroy()
		if (failure?.fault === 'stall') {
			inProgress.delete(chat)
			await new Promise<void>((resume) => stalled.push({ chat, resume }))
		} else if (failure && failure.fault !== 'lost') {
			const { fault: code, retry_after_ms } = failure
			return void response.writeHead(400).end(JSON.stringify({ code, message: `scripted ${code}`, retry_after_ms }))
		}
		const answer = act(what, body) as { code?: string }
		watch.check()
		if (room.latency_ms > 0) await new Promise((resolve) => setTimeout(resolve, room.latency_ms))
		if (failure?.fault === 'lost') return void request.socket.destroy()
		response.writeHead(answer.code === undefined ? 200 : 400).end(JSON.stringify(answer))
	}
	const server = createServer((request, response) => {
		serve(request, response).catch(() => response.destroy())
	})
	const { url, stop } = await listenOnLoopback(server)
	const room: RoomPlatform = {
		url,
		token,
		place: (chat_id, type) => void places.set(chat_id, type),
		say(chat_id, text, more = {}) {
			const message: IncomingMessage = {
				id: String(++said),
				sender: { id: 'u1', name: 'Ann' },
				text,
				addressed: true,
				...more,
				chat: { id: chat_id, kind: 'private', ...more.chat },
			}
			push(message)
			return message
		},
		deliver: push,
		shown: (chat_id) => messages.filter(({ chat }) => chat === chat_id),
		async shows(chat_id, count) {
			await room.until(() => room.shown(chat_id).length >= count, `${count} messages in ${chat_id}`)
			return room.shown(chat_id)
		},
		async until(condition, what) {
			await watch.until(
				() => condition() || undefined,
				() => `timed out waiting for ${what}; the last messages were ${JSON.stringify(messages.slice(-5))}`,
			)
		},
		failNext: (chat, ...next) => void failures.push(...next.map((failure) => ({ chat, failure }))),
		release(chat_id) {
			for (const { chat, resume } of stalled) if (chat === chat_id) resume()
		},
		calls: (chat_id) => calls.filter(({ chat }) => chat === chat_id).map(({ what }) => what),
		drafts: (chat_id) => drafts.filter(({ chat }) => chat === chat_id).map(({ text }) => text),
		latency_ms: 0,
		files: new Map(),
		loads: [],
		serve(ref, bytes) {
			room.files.set(ref, bytes)
			for (const one of unanswered) {
				if (one.ref !== ref) continue
				unanswered.delete(one)
				one.answer()
			}
		},
		known: [],
		overlaps,
		cut() {
			for (const { readers } of feeds.values()) for (const reader of readers) reader.destroy()
		},
		stop,
	}
	return room
}
