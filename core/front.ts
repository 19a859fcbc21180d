/**
 * The sockets. They outlive every generation: each request and upgrade goes to whichever generation is current when it
 * arrives.
 */
import { once } from 'node:events'
import type { IncomingMessage, Server, ServerOptions, ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { Fault, messageOf } from './errors.ts'
import type { Generation } from './generation.ts'
import { newId } from './ids.ts'
import type { Logger } from './log.ts'
import { http } from './node-http.ts'
import type { Address } from './plugin.ts'
import { requestIdFor, underRequestId } from './request-id.ts'

export interface ListenAt {
	host: string
	port: number
}

const listenerSettings: ServerOptions = {
	maxHeaderSize: 16 * 1024,
	headersTimeout: 10_000,
	requestTimeout: 30_000,
	connectionsCheckingInterval: 5_000,
	// Longer than the usual 60 s of a proxy in front, which else meets a connection that is just being closed.
	keepAliveTimeout: 65_000,
}
const CONNECTION_LIMIT = 20_000
/** For a client to take a refusal on its bare socket, before that is cut. */
const REFUSAL_MS = 1_000

interface Listener {
	at: ListenAt
	server: Server
}

export class Front {
	/** Requests go here. Assigned by the gateway, in one step. */
	current: Generation | null = null
	readonly #listeners = new Map<Address, Listener>()
	/** Node's server forgets them, and would wait for them without end. */
	readonly #upgraded = new Set<Duplex>()
	/** Connections whose last request has come, with that request. */
	readonly #spent = new WeakMap<Duplex, IncomingMessage>()
	readonly #log: Logger
	#open = 0

	constructor(log: Logger) {
		this.#log = log
	}

	/** Requests whose answers have not ended yet, open streams among them. */
	get open(): number {
		return this.#open
	}

	/** Listens at `at`, or nowhere for null. A new place is listened at before the old one is let go; connections there end with their requests. */
	async listen(address: Address, at: ListenAt | null): Promise<void> {
		const old = this.#listeners.get(address)
		if (at && old && old.at.host === at.host && old.at.port === at.port) return
		if (at) {
			this.#listeners.set(address, { at, server: await this.#listen(address, at) })
			if (old) this.#log.info(`listens at ${this.url(address)} from now on`)
		}
		if (!at) this.#listeners.delete(address)
		if (old) closeGently(old.server)
	}

	/** Such as `http://127.0.0.1:3000`; null where it does not listen. */
	url(address: Address): string | null {
		const listener = this.#listeners.get(address)
		const bound = listener?.server.address() as AddressInfo | null | undefined
		if (!bound) return null
		const host = bound.address === '0.0.0.0' ? '127.0.0.1' : bound.address === '::' ? '::1' : bound.address
		return `http://${host.includes(':') ? `[${host}]` : host}:${bound.port}`
	}

	/** Takes no more connections, waits for the open requests up to the deadline, then cuts what is left. */
	async close(deadlineMs: number): Promise<void> {
		const servers = [...this.#listeners.values()].map((listener) => listener.server)
		this.#listeners.clear()
		const timer = setTimeout(() => {
			for (const server of servers) server.closeAllConnections()
			for (const socket of this.#upgraded) socket.destroy()
		}, deadlineMs)
		// A connection whose last answer goes out meanwhile would stay open for as long as its client likes.
		const idle = setInterval(() => {
			for (const server of servers) server.closeIdleConnections()
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

	#serve(address: Address, request: IncomingMessage, response: ServerResponse): void {
		if (this.current) return this.current.request(address, request, response)
		response
			.writeHead(503, { 'content-type': 'application/json', 'retry-after': '1' })
			.end('{"statusCode":503,"error":"Service Unavailable","code":"unavailable","message":"the gateway is starting"}')
	}

	async #listen(address: Address, at: ListenAt): Promise<Server> {
		const shouldUpgradeCallback = (request: IncomingMessage): boolean => this.#isUpgrade(request)
		const server = http.createServer({ ...listenerSettings, shouldUpgradeCallback })
		server.maxConnections = CONNECTION_LIMIT
		const pass = (request: IncomingMessage, response: ServerResponse): void => {
			const last = this.#spent.get(request.socket)
			if (last && last !== request) return
			if (last) response.shouldKeepAlive = false
			this.#open++
			response.once('close', () => this.#open--)
			underRequestId(request, response, () => this.#serve(address, request, response))
		}
		server.on('request', pass)
		server.on('checkContinue', (request: IncomingMessage, response: ServerResponse) => {
			response.writeContinue()
			pass(request, response)
		})
		server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
			// Node takes its own listener off here, and a client that just goes would end the process.
			socket.on('error', () => socket.destroy())
			this.#upgraded.add(socket)
			socket.once('close', () => this.#upgraded.delete(socket))
			try {
				if (!this.current?.upgrade(address, request, socket, head))
					refuseSocket(socket, 404, 'Not Found', requestIdFor(request))
			} catch (error) {
				this.#log.error({ err: error }, 'a plugin failed to take an upgrade')
				socket.destroy()
			}
		})
		server.on('clientError', (error: NodeJS.ErrnoException, socket: Duplex) => {
			if (error.code === 'ECONNRESET' || !socket.writable) socket.destroy()
			else if (error.code === 'HPE_HEADER_OVERFLOW') refuseSocket(socket, 431, 'Request Header Fields Too Large')
			else if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT') refuseSocket(socket, 408, 'Request Timeout')
			else refuseSocket(socket, 400, 'Bad Request')
		})
		server.on('drop', (data) =>
			this.#log.warn(
				{ remote: data?.remoteAddress },
				`a connection was refused: more than ${CONNECTION_LIMIT} are open`,
			),
		)
		try {
			server.listen(at.port, at.host)
			await once(server, 'listening')
		} catch (error) {
			throw new Fault('unavailable', `cannot listen at ${at.host}:${at.port}: ${whyNot(error, address)}`, {
				cause: error,
			})
		}
		server.on('error', (error) => this.#log.error({ err: error }, 'the listener failed'))
		return server
	}

	/**
	 * Other protocols than WebSocket are not offered, and what is not offered is ignored (RFC 9110, section 7.8): the request
	 * is served as if it had not asked. It is the last one of its connection, since Node's parser drops what has come along
	 * behind it, and would read the body of a request whose head it has dropped as a request.
	 */
	#isUpgrade(request: IncomingMessage): boolean {
		const { socket, headers, httpVersion } = request
		if (this.#spent.has(socket)) return false
		if (httpVersion !== '1.0' && headers.upgrade?.toLowerCase() === 'websocket') return true
		this.#spent.set(socket, request)
		return false
	}
}

/** Answers an upgrade, or a request that is none, on its bare socket. */
function refuseSocket(socket: Duplex | Socket, status: number, text: string, request_id = newId()): void {
	const body = JSON.stringify({
		statusCode: status,
		error: text,
		code: status === 404 ? 'not_found' : 'invalid_request',
		message: text,
	})
	socket.end(
		`HTTP/1.1 ${status} ${text}\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\nx-request-id: ${request_id}\r\nconnection: close\r\n\r\n${body}`,
	)
	// Its client need not end it, and what it still sends is nothing to us.
	const cut = setTimeout(() => socket.destroy(), REFUSAL_MS)
	socket.once('close', () => clearTimeout(cut))
	socket.resume()
}

function closeGently(server: Server): void {
	server.close()
	server.closeIdleConnections()
}

function whyNot(error: unknown, address: Address): string {
	const port = address === 'main' ? 'server.port or SVC_PORT' : 'legacy.port or SVC_LEGACY_PORT'
	switch ((error as NodeJS.ErrnoException).code) {
		case 'EADDRINUSE':
			return `another program listens there; end it, or set ${port} to another port`
		case 'EACCES':
			return `this user may not; ports below 1024 need rights, so set ${port} to a higher one`
		case 'EADDRNOTAVAIL':
			return 'this machine has no such address; correct server.host or SVC_HOST'
		default:
			return messageOf(error)
	}
}
