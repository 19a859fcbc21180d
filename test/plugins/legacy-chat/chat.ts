/** Clients of the chat API over real HTTP and WebSocket. They wait only for conditions. */
import http from 'node:http'
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { connect } from 'node:net'
import type { Socket } from 'node:net'
import { createParser } from 'eventsource-parser'
import type { Test } from 'tap'
import WebSocket from 'ws'
import { send } from '../../support/gateway.ts'
import type { Answer, Reply, RequestOptions, TestGateway } from '../../support/gateway.ts'
import { openWatch } from '../../support/wait.ts'

export interface Chat {
	url: string
	request(method: string, path: string, options?: RequestOptions): Promise<Reply<Answer>>
	/** POST …/chat. */
	say(agent: string, body: unknown, options?: RequestOptions): Promise<Reply<Answer>>
	/** GET …/chat/stream, or POST …/chat with a body. */
	stream(agent: string, said: Said, options?: StreamOptions): Promise<ChatStream>
	open(agent: string, options?: WebSocket.ClientOptions): Promise<ChatSocket>
}

type Said = { message: string; context?: string } | { body: Record<string, unknown> }

interface StreamOptions {
	token?: string
	headers?: Record<string, string>
}

interface NamedEvent {
	event: string
	data: Answer
}

export interface ChatStream {
	status: number
	headers: IncomingHttpHeaders
	events: NamedEvent[]
	comments: string[]
	/** The Last-Event-ID with which a browser's EventSource would reconnect. */
	lastEventId: string
	/** All tokens so far, concatenated. */
	text(): string
	names(): string[]
	/** Settles once `condition` holds. */
	until(condition: () => boolean, what: string): Promise<unknown>
	/** The last event, once the stream has ended properly. */
	last(): Promise<NamedEvent>
	/** How the stream ended: `end` by the server, `cut` by a broken connection, `closed` by this side. */
	closed: Promise<'end' | 'cut' | 'closed'>
	close(): void
}

export interface ChatSocket {
	socket: WebSocket
	frames: Answer[]
	/** Sends text and bytes unchanged, anything else as JSON. */
	send(frame: unknown): void
	/** Waits for the next frame of one of these types. Skips other frames. */
	next(...types: string[]): Promise<Answer>
	closed: Promise<{ code: number; reason: string }>
}

export function chatOf(gateway: TestGateway): Chat {
	const url = gateway.running.gateway.status.url('legacy')
	if (url === null) throw new Error('the gateway does not listen at its legacy address')
	return {
		url,
		request: (method, path, options) => send(url + path, method, options),
		say: (agent, body, options) => send(`${url}/api/agents/${agent}/chat`, 'POST', { body, ...options }),
		async stream(agent, said, { token, headers } = {}) {
			const isPost = 'body' in said
			const query = isPost ? '' : `/stream?${new URLSearchParams({ ...said }).toString()}`
			const response = await ask(`${url}/api/agents/${agent}/chat${query}`, {
				method: isPost ? 'POST' : 'GET',
				headers: {
					...(isPost && { 'content-type': 'application/json' }),
					...(token !== undefined && { authorization: `Bearer ${token}` }),
					...headers,
				},
				...(isPost && { body: JSON.stringify({ ...said.body, stream: true }) }),
			})
			return follow(response)
		},
		open: (agent, options) => openSocket(`${url.replace('http', 'ws')}/api/agents/${agent}/chat/ws`, options),
	}
}

interface Asked {
	method: string
	headers: Record<string, string>
	body?: string
}

function ask(url: string, { method, headers, body }: Asked): Promise<IncomingMessage> {
	return new Promise((resolve, reject) => {
		const request = http.request(url, { method, agent: false, headers })
		request.once('response', resolve)
		request.once('error', reject)
		request.end(body)
	})
}

async function follow(response: IncomingMessage): Promise<ChatStream> {
	response.setEncoding('utf8')
	if (response.statusCode !== 200) {
		let text = ''
		for await (const part of response) text += String(part)
		throw new Error(`the stream was answered with ${response.statusCode}: ${text}`)
	}
	const ended = Promise.withResolvers<'end' | 'cut' | 'closed'>()
	let isClosedHere = false
	const watch = openWatch()
	const stream: ChatStream = {
		status: response.statusCode,
		headers: response.headers,
		events: [],
		comments: [],
		lastEventId: '',
		text: () =>
			stream.events
				.filter(({ event }) => event === 'token')
				.map(({ data }) => String(data.content))
				.join(''),
		names: () => stream.events.map(({ event }) => event),
		until: (condition, what) =>
			watch.until(
				() => condition() || undefined,
				() => `timed out waiting for ${what}`,
			),
		async last() {
			const how = await ended.promise
			const last = stream.events.at(-1)
			if (how !== 'end' || !last) throw new Error(`the stream was ${how} after ${stream.names().join(' ')}`)
			return last
		},
		closed: ended.promise,
		close() {
			isClosedHere = true
			response.destroy()
		},
	}
	const parser = createParser({
		onEvent: ({ event, data }) => stream.events.push({ event: event ?? '', data: JSON.parse(data) }),
		onId: (id) => (stream.lastEventId = id),
		onComment: (comment) => stream.comments.push(comment),
	})
	response.on('data', (text: string) => {
		parser.feed(text)
		watch.check()
	})
	response.on('error', () => {}) // after a broken connection, `complete` is false
	response.once('close', () => ended.resolve(isClosedHere ? 'closed' : response.complete ? 'end' : 'cut'))
	return stream
}

function openSocket(url: string, options: WebSocket.ClientOptions = {}): Promise<ChatSocket> {
	const socket = new WebSocket(url, options)
	const closed = Promise.withResolvers<{ code: number; reason: string }>()
	const watch = openWatch()
	let looked = 0
	const chat: ChatSocket = {
		socket,
		frames: [],
		send: (frame) => socket.send(typeof frame === 'string' || Buffer.isBuffer(frame) ? frame : JSON.stringify(frame)),
		async next(...types) {
			const found = await watch.until(
				() => [...chat.frames.entries()].find(([at, { type }]) => at >= looked && types.includes(type)),
				() => `there was no frame of ${types.join(' or ')}; there were ${JSON.stringify(chat.frames)}`,
			)
			looked = found[0] + 1
			return found[1]
		},
		closed: closed.promise,
	}
	socket.on('message', (data) => {
		chat.frames.push(JSON.parse(String(data)))
		watch.check()
	})
	socket.once('close', (code, reason) => closed.resolve({ code, reason: String(reason) }))
	return new Promise((resolve, reject) => {
		socket.once('open', () => resolve(chat))
		socket.on('error', reject)
		socket.once('unexpected-response', (_request, response: IncomingMessage) => {
			let text = ''
			response.setEncoding('utf8').on('data', (part: string) => (text += part))
			response.once('end', () => reject(new Refused(response.statusCode ?? 0, response.headers, text)))
		})
	})
}

/** A handshake that was refused with an HTTP response. */
export class Refused extends Error {
	readonly status: number
	readonly headers: IncomingHttpHeaders
	readonly body: Answer

	constructor(status: number, headers: IncomingHttpHeaders, text: string) {
		super(`refused with ${status}: ${text}`)
		this.status = status
		this.headers = headers
		this.body = JSON.parse(text)
	}
}

/** The refusal that a promise rejects with. */
export async function refusal(opening: Promise<ChatSocket>): Promise<Refused> {
	const opened = await opening.catch((error: unknown) => error)
	if (opened instanceof Refused) return opened
	throw new Error('the WebSocket was not refused with an answer', { cause: opened })
}

/** Sends an upgrade request with any headers. Settles with the socket once it is accepted, otherwise with the complete response. */
export async function rawUpgrade(
	url: string,
	path: string,
	headers: string[] = [],
	line = `GET ${path} HTTP/1.1`,
): Promise<{ answer: string; socket: Socket }> {
	const { host, hostname, port } = new URL(url)
	const socket = connect(Number(port), hostname)
	const own = headers.some((header) => header.startsWith('host:')) ? [] : [`host: ${host}`]
	const wanted = ['connection: Upgrade', 'upgrade: websocket', 'sec-websocket-version: 13', `sec-websocket-key: ${KEY}`]
	const standard = wanted.filter((one) => !headers.some((header) => header.split(':')[0] === one.split(':')[0]))
	socket.on('error', () => {}) // the gateway may reset the connection
	socket.write([line, ...own, ...standard, ...headers, '', ''].join('\r\n'))
	let answer = ''
	return new Promise((resolve) => {
		socket.on('data', (data) => {
			answer += data.toString('latin1')
			if (answer.startsWith('HTTP/1.1 101') && answer.includes('\r\n\r\n')) resolve({ answer, socket })
		})
		socket.once('close', () => resolve({ answer, socket }))
		socket.once('end', () => resolve({ answer, socket }))
	})
}

const KEY = Buffer.alloc(16, 7).toString('base64')

/** A frame of a client (RFC 6455, section 5.2), masked with zeros. */
export function frameOf(opcode: number, payload: Buffer | string, { fin = true } = {}): Buffer {
	const bytes = Buffer.from(payload)
	const head = Buffer.alloc(bytes.length < 126 ? 6 : bytes.length < 65_536 ? 8 : 14)
	head[0] = (fin ? 0x80 : 0) | opcode
	if (bytes.length < 126) head[1] = 0x80 | bytes.length
	else if (bytes.length < 65_536) {
		head[1] = 0x80 | 126
		head.writeUInt16BE(bytes.length, 2)
	} else {
		head[1] = 0x80 | 127
		head.writeBigUInt64BE(BigInt(bytes.length), 2)
	}
	return Buffer.concat([head, bytes])
}

/** Asserts an error of the chat API: its status, its exact shape, and its message. */
export function fails(
	t: Test,
	{ status, body }: Pick<Reply<Answer>, 'status' | 'body'>,
	wanted: number,
	message: RegExp,
): void {
	t.equal(status, wanted, `${message}: status ${status} with ${JSON.stringify(body).slice(0, 300)}`)
	t.strictSame(Object.keys(body), ['success', 'error'], `${message}: the shape`)
	t.equal(body.success, false)
	t.match(body.error, message)
}
