/**
 * The sockets. They outlive generations: each request and upgrade goes to the generation that is current when it arrives.
 */
import { AsyncResource } from 'node:async_hooks'
import { once } from 'node:events'
import type { IncomingMessage, Server, ServerOptions, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { Fault } from '../errors.ts'
import { newId } from '../util/ids.ts'
import { listenProblem } from './listening.ts'
import type { Address, ListenAt } from './listening.ts'
import type { Logger } from '../log/log.ts'
import { http } from './node-http.ts'
import { openFilesWatch } from './open-files.ts'
import { answerSocket, safetyHeaders } from './raw-answer.ts'
import { REQUEST_ID, requestIdFor, underRequestId } from './request-id.ts'
import { endUnsent, unsentLimits } from './unsent-answers.ts'
import type { UnsentLimits } from './unsent-answers.ts'

const listenerSettings: ServerOptions = {
	// Node would refuse a request without a Host with an empty answer; server.ts refuses it with a message.
	requireHostHeader: false,
	maxHeaderSize: 16 * 1024,
	headersTimeout: 10_000,
	requestTimeout: 30_000,
	connectionsCheckingInterval: 5_000,
	// Longer than the usual 60 s of a reverse proxy, which could otherwise use a connection that is just being closed.
	keepAliveTimeout: 65_000,
}
const CONNECTION_LIMIT = 20_000
/** Pipelined requests of one connection: each is kept in memory until its turn. */
const AHEAD_LIMIT = 64
/** For connections with pipelined requests, how many wait for their turn. */
const ahead = new WeakMap<Duplex, number>()
const safety = Object.entries(safetyHeaders)
/** How long connections without a request are kept when the gateway stops. */
const SILENCE_MS = 200
/** How often unsent answers are checked while requests are open. */
const CHECK_MS = 250

/** New sockets that are listening, but not in use yet. */
export interface NewSockets {
	/** Replaces the old listeners; connections there end with their requests. */
	take(): void
	drop(): void
}

/** Answers requests and upgrades: the current generation. */
export interface Handler {
	request(address: Address, request: IncomingMessage, response: ServerResponse): void
	/** False if nothing responds at its path. */
	upgrade(address: Address, request: IncomingMessage, socket: Duplex, head: Buffer): boolean
}

interface Listener {
	at: ListenAt
	server: Server
}

export class Listeners {
	/** Protocols to which a request may upgrade, in lower case. */
	readonly protocols = new Set(['websocket'])
	/** The handler of all requests. Assigned by the gateway, in one step. */
	current: Handler | null = null
	readonly #listeners = new Map<Address, Listener>()
	/** Node's server does not track upgraded sockets, but `close` would wait for them forever. */
	readonly #upgraded = new Set<Duplex>()
	/** All connections: for Node, a connection on which nothing was sent does not count as idle. */
	readonly #connections = new Set<Socket>()
	/** Connections that accept no further request, with their last one. */
	readonly #spent = new WeakMap<Duplex, IncomingMessage>()
	readonly #log: Logger
	readonly #handed: ReadonlyMap<Address, number>
	#open = 0
	readonly #closed = (): void => void this.#open--
	readonly #endUnsent: ReturnType<typeof endUnsent>
	readonly #watchOpenFiles: () => void
	#checking: NodeJS.Timeout | undefined

	/** `handed`: file descriptors of sockets that another process opened, which are used instead of the configured addresses. */
	constructor(log: Logger, handed: ReadonlyMap<Address, number> = new Map(), limits: UnsentLimits = unsentLimits) {
		this.#log = log
		this.#handed = handed
		this.#endUnsent = endUnsent(limits, log)
		this.#watchOpenFiles = openFilesWatch(log, () => this.#connections.size === 0 && this.#upgraded.size === 0)
	}

	/** Requests whose answers have not ended yet, including open streams. */
	get openRequests(): number {
		return this.#open
	}

	/**
	 * Listens at each of these addresses, in addition to the old ones until `take`. Throws `unavailable`, with the setting in
	 * `errors`, if one of them is not available; then it listens at none of them.
	 */
	async open(places: Partial<Record<Address, ListenAt>>): Promise<NewSockets> {
		const fresh = new Map<Address, Listener>()
		const drop = (): void => fresh.forEach(({ server }) => closeGently(server))
		try {
			for (const [address, at] of Object.entries(places) as [Address, ListenAt][]) {
				const old = this.#listeners.get(address)?.at
				const isHanded = this.#handed.has(address)
				if (old && (isHanded || (old.host === at.host && old.port === at.port))) continue
				const server = this.#server(address)
				fresh.set(address, { at, server })
				if (!isHanded) await this.#listen(server, address, at)
			}
		} catch (error) {
			drop()
			throw error
		}
		const take = (): void => {
			for (const [address, listener] of fresh) {
				const old = this.#listeners.get(address)
				this.#listeners.set(address, listener)
				// Only now: until requests can be answered, connections wait in the socket's backlog.
				const fd = this.#handed.get(address)
				if (fd !== undefined) listener.server.listen({ fd })
				if (!old) continue
				this.#log.info(`now listening at ${this.url(address)}`)
				closeGently(old.server)
			}
		}
		return { take, drop }
	}

	/** Stops listening there; connections end with their requests. A socket that was handed over stays, since it could not be reopened. */
	leave(address: Address): void {
		if (this.#handed.has(address)) return
		const old = this.#listeners.get(address)
		this.#listeners.delete(address)
		if (old) closeGently(old.server)
	}

	/** Such as `http://127.0.0.1:3000`; null if it does not listen. */
	url(address: Address): string | null {
		const listener = this.#listeners.get(address)
		const bound = listener?.server.address()
		// A socket that was handed over may be a Unix domain socket.
		if (!bound || typeof bound === 'string') return null
		const host = bound.address === '0.0.0.0' ? '127.0.0.1' : bound.address === '::' ? '::1' : bound.address
		return `http://${host.includes(':') ? `[${host}]` : host}:${bound.port}`
	}

	/** Passes a request to the current handler; answers 503 if there is none. */
	request(address: Address, request: IncomingMessage, response: ServerResponse): void {
		if (this.current) return this.current.request(address, request, response)
		response
			.writeHead(503, { 'content-type': 'application/json', 'retry-after': '1' })
			.end('{"statusCode":503,"error":"Service Unavailable","code":"unavailable","message":"the gateway is starting"}')
	}

	/** The same for an upgrade; it is refused if nothing responds at its path. */
	upgrade(address: Address, request: IncomingMessage, socket: Duplex, head: Buffer): void {
		try {
			if (!this.current?.upgrade(address, request, socket, head)) refuse(socket, 404, requestIdFor(request))
		} catch (error) {
			this.#log.error({ err: error }, 'a plugin failed to take an upgrade')
			socket.destroy()
		}
	}

	/** Accepts no more connections, waits for the open requests up to the deadline, then closes the remaining connections. */
	async close(deadlineMs: number): Promise<void> {
		const begun = performance.now()
		const servers = [...this.#listeners.values()].map((listener) => listener.server)
		this.#listeners.clear()
		const timer = setTimeout(() => {
			for (const server of servers) server.closeAllConnections()
			for (const socket of this.#upgraded) socket.destroy()
		}, deadlineMs)
		// A connection whose last answer is sent meanwhile would stay open until its client closes it.
		const idle = setInterval(() => {
			for (const server of servers) server.closeIdleConnections()
			// Clients open connections in advance. On a new one the request may still be on its way.
			if (performance.now() - begun < SILENCE_MS) return
			for (const socket of this.#connections) if (socket.bytesRead === 0) socket.destroy()
		}, 50)
		await Promise.all(
			servers.map(async (server) => {
				const closed = once(server, 'close')
				closeGently(server)
				await closed
			}),
		)
		clearInterval(idle)
		clearTimeout(timer)
	}

	#server(address: Address): Server {
		const shouldUpgradeCallback = (request: IncomingMessage): boolean => this.#isUpgrade(request)
		const server = http.createServer({ ...listenerSettings, shouldUpgradeCallback })
		server.maxConnections = CONNECTION_LIMIT
		// Node would drop headers above a number: without the last one, which a proxy added, a request would count as local.
		// `maxHeaderSize` limits them.
		server.maxHeadersCount = 0
		const pass = (request: IncomingMessage, response: ServerResponse): void => {
			// Once the server no longer listens, each connection ends with its next request: a busy client would keep it open.
			const isAhead = response.socket === null
			const isLast = !server.listening || (isAhead && !this.#maySendMore(request, response))
			if (isLast && !this.#spent.has(request.socket)) this.#spent.set(request.socket, request)
			const last = this.#spent.get(request.socket)
			// Never sent, but counts as pending output: Node stops reading from a connection that has much of it.
			if (last && last !== request) return void response.end()
			if (last) response.shouldKeepAlive = false
			for (const [name, value] of safety) response.setHeader(name, value)
			this.#open++
			this.#checking ??= setInterval(() => this.#checkUnsent(), CHECK_MS).unref()
			// Not `once`: `close` is emitted only once, and `once` would wrap the function for each request.
			response.on('close', this.#closed)
			const serve = (): void => underRequestId(request, response, () => this.request(address, request, response))
			// A pipelined request begins once the earlier answers are sent. Otherwise one connection could hold any number of event
			// streams and long answers. Without the binding, it would run in the async context of the earlier answer.
			if (isAhead) response.once('socket', AsyncResource.bind(serve))
			else serve()
		}
		server.on('connection', (socket: Socket) => {
			this.#connections.add(socket)
			this.#watchOpenFiles()
			socket.once('close', () => this.#connections.delete(socket))
		})
		server.on('request', pass)
		server.on('checkContinue', (request: IncomingMessage, response: ServerResponse) => {
			response.writeContinue()
			pass(request, response)
		})
		// Expectations other than 100-continue are ignored: Node's own answer would lack the headers that every answer has.
		server.on('checkExpectation', pass)
		server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
			// Node has removed its own error listener, so a client that disconnects would end the process.
			socket.on('error', () => socket.destroy())
			this.#upgraded.add(socket)
			socket.once('close', () => this.#upgraded.delete(socket))
			this.#connections.delete(socket as Socket) // the plugin bounds the pending output there
			this.upgrade(address, request, socket, head)
		})
		server.on('clientError', (error: NodeJS.ErrnoException, socket: Duplex) => {
			if (error.code === 'ECONNRESET' || !socket.writable) socket.destroy()
			else if (error.code === 'HPE_HEADER_OVERFLOW') refuse(socket, 431)
			else if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT') refuse(socket, 408)
			else refuse(socket, 400)
		})
		server.on('drop', (data) =>
			this.#log.warn(
				{ remote: data?.remoteAddress },
				`a connection was refused: more than ${CONNECTION_LIMIT} are open`,
			),
		)
		server.on('error', (error) => {
			if (server.listening || this.#handed.has(address)) this.#log.error({ err: error }, 'the listener failed')
		})
		return server
	}

	#checkUnsent(): void {
		this.#endUnsent(this.#connections)
		if (this.#open > 0) return
		clearInterval(this.#checking)
		this.#checking = undefined
	}

	/** False if this is the last pipelined request that its connection may send. */
	#maySendMore({ socket }: IncomingMessage, response: ServerResponse): boolean {
		const count = (ahead.get(socket) ?? 0) + 1
		ahead.set(socket, count)
		response.once('socket', () => ahead.set(socket, (ahead.get(socket) ?? 0) - 1))
		return count < AHEAD_LIMIT
	}

	async #listen(server: Server, address: Address, at: ListenAt): Promise<void> {
		try {
			server.listen(at)
			await once(server, 'listening')
		} catch (error) {
			const problem = listenProblem(error, address, at)
			throw new Fault('unavailable', `${problem.path}: ${problem.message}`, { errors: [problem], cause: error })
		}
	}

	/**
	 * An upgrade to a protocol that is not in `protocols` is ignored (RFC 9110, section 7.8), and the request is served without it.
	 * It is the last one of its connection: Node's parser drops data that arrived together with it, and might then parse the rest
	 * of another request's body as a request.
	 */
	#isUpgrade(request: IncomingMessage): boolean {
		const { socket, headers, httpVersion } = request
		if (this.#spent.has(socket)) return false
		if (httpVersion !== '1.0' && this.protocols.has(headers.upgrade?.toLowerCase() ?? '')) return true
		this.#spent.set(socket, request)
		return false
	}
}

/** Whether the client has sent requests on this connection before the earlier ones were answered. */
export function isPipelined(socket: Duplex): boolean {
	return ahead.has(socket)
}

function refuse(socket: Duplex, statusCode: 400 | 404 | 408 | 431, request_id = newId()): void {
	const error = http.STATUS_CODES[statusCode]
	const code = statusCode === 404 ? 'not_found' : 'invalid_request'
	answerSocket(socket, statusCode, { statusCode, error, code, message: error }, { [REQUEST_ID]: request_id })
}

function closeGently(server: Server): void {
	server.close()
	server.closeIdleConnections()
}
