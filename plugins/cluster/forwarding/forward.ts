/**
 * Forwards a request to the working gateway, and streams the answer back, with backpressure in both directions. When one side
 * disconnects, the other one is disconnected too.
 */
import type { KeyObject } from 'node:crypto'
import type { ClientRequest, IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import type { Duplex, Readable, Writable } from 'node:stream'
import type { Address } from '../../../core/http/listening.ts'
import { http } from '../../../core/http/node-http.ts'
import { allBytes } from '../../../core/util/all-bytes.ts'
import { peerOf } from '../../shared/peer.ts'
import { REQUEST_ID, requestIdFor } from '../../../core/http/request-id.ts'
import { forwardedHeaders, pairsOf, passedHeaders } from './headers.ts'
import type { ForwardedAs } from './headers.ts'
import { openSigner } from './proof.ts'

/** The working gateway. */
export interface Route {
	/** The id of its tenure. */
	tenure: string
	/** Signs requests to it. */
	key: KeyObject
	urls: { main: URL; legacy: URL | null }
	/** Requests and connections to it that are in progress. Destroy them all once another gateway works. */
	open: Set<{ destroy(): unknown }>
}

/**
 * `sent`: the client has its answer, or is gone. `not_sent`: the gateway could not be reached and has received nothing. `lost`: it
 * has received the request, and gave no answer.
 */
export type Outcome = 'sent' | 'not_sent' | 'lost'

export interface Forwarder {
	/** The route must have a URL for the address. */
	request(route: Route, address: Address, request: IncomingMessage, response: ServerResponse): Promise<Outcome>
	upgrade(route: Route, address: Address, request: IncomingMessage, socket: Duplex, head: Buffer): Promise<Outcome>
	/**
	 * Sends a GET without a body, with the other headers of `request`, such as its token. Throws if there is no answer, or it is
	 * longer than 64 KiB.
	 */
	ask(route: Route, request: IncomingMessage, requestId: string): Promise<ProbeAnswer>
	close(): void
}

export interface ProbeAnswer {
	status: number
	headers: IncomingHttpHeaders
	body: string
}

const CONNECT_MS = 2_000
/** Shorter than the receiver's limit for idle connections. */
const IDLE_MS = 30_000
const IDLE_CONNECTIONS = 256
const ANSWER_HEADER_BYTES = 32 * 1024
const PROBE_MS = 2_000
const PROBE_BYTES = 64 * 1024
/** How long a client may take to read the end of what was sent to it. */
const DRAIN_MS = 1_000

export function openForwarder(): Forwarder {
	const sign = openSigner()
	const agent = new http.Agent({ keepAlive: true, maxFreeSockets: IDLE_CONNECTIONS, timeout: IDLE_MS })

	/** The request ends with the connection to the `client`. */
	const open = (
		{ tenure, key, urls, open: inProgress }: Route,
		address: Address,
		request: IncomingMessage,
		as: ForwardedAs,
		client?: Writable,
	): ClientRequest => {
		const url = urls[address] as URL
		const method = as.kind === 'probe' ? 'GET' : (request.method ?? 'GET')
		const target = request.url ?? '/'
		const proof = sign(key, tenure, peerOf(request), { address, method, target })
		const sent = http.request({
			agent,
			host: url.hostname.replaceAll(/[[\]]/g, ''),
			port: url.port,
			method,
			path: target,
			headers: forwardedHeaders(request, { ...as, proof }),
			setHost: false,
			maxHeaderSize: ANSWER_HEADER_BYTES,
		})
		const gone = (): void => void sent.destroy()
		inProgress.add(sent)
		client?.once('close', gone)
		sent.once('close', () => {
			inProgress.delete(sent)
			client?.off('close', gone)
		})
		return sent
	}

	return {
		async request(route, address, request, response) {
			const requestId = String(response.getHeader(REQUEST_ID))
			const sent = open(route, address, request, { kind: 'request', requestId }, response)
			const answered = answerOf(sent)
			if (!(await isConnected(sent))) return 'not_sent'
			request.pipe(sent)
			const answer = await answered
			if (!answer) {
				request.unpipe(sent)
				return 'lost'
			}
			response.writeHead(answer.statusCode ?? 502, answer.statusMessage, passedHeaders(answer.rawHeaders))
			// A client waits for the headers of a stream, which may have no body yet.
			if (answer.headers['content-length'] === undefined) response.flushHeaders()
			answer.on('error', () => response.destroy())
			answer.pipe(response)
			return 'sent'
		},

		async upgrade(route, address, request, socket, head) {
			const sent = open(route, address, request, { kind: 'upgrade', requestId: requestIdFor(request) }, socket)
			const upgraded = new Promise<true>((resolve) => {
				sent.once('upgrade', (answer: IncomingMessage, other: Duplex, first: Buffer) => {
					route.open.add(other)
					other.once('close', () => route.open.delete(other))
					socket.write(headOf(answer, answer.rawHeaders))
					socket.write(first)
					other.write(head)
					pass(socket, other)
					pass(other, socket)
					resolve(true)
				})
			})
			const answered = answerOf(sent)
			if (!(await isConnected(sent))) return 'not_sent'
			sent.end()
			const answer = await Promise.race([upgraded, answered])
			if (answer === true) return 'sent'
			if (!answer) return 'lost'
			// The end of the connection marks the end of the body.
			socket.write(headOf(answer, [...passedHeaders(answer.rawHeaders), 'connection', 'close']))
			answer.on('error', () => socket.destroy())
			pass(answer, socket)
			return 'sent'
		},

		async ask(route, request, requestId) {
			const sent = open(route, 'main', request, { kind: 'probe', requestId })
			using _ = setTimeout(() => sent.destroy(), PROBE_MS)
			const answered = answerOf(sent)
			sent.end()
			const answer = await answered
			if (!answer) throw new Error('the working gateway does not answer')
			const body = await allBytes(answer, PROBE_BYTES, () => new Error('the answer is too long'))
			return { status: answer.statusCode ?? 503, headers: answer.headers, body: body.toString('utf8') }
		},

		close: () => agent.destroy(),
	}
}

/** Undefined if the connection failed or was closed without an answer. */
function answerOf(sent: ClientRequest): Promise<IncomingMessage | undefined> {
	return new Promise((resolve) => {
		sent.once('response', resolve)
		// Not `once`: another error may follow the answer.
		sent.on('error', () => resolve(undefined))
		sent.once('close', () => resolve(undefined))
	})
}

/** True once the request is connected; false if the connection fails or takes too long. */
function isConnected(sent: ClientRequest): Promise<boolean> {
	return new Promise((resolve) => {
		const late = setTimeout(() => sent.destroy(), CONNECT_MS)
		const end = (connected: boolean): void => {
			clearTimeout(late)
			resolve(connected)
		}
		sent.once('socket', (socket) => {
			if (!socket.connecting) end(true)
			else socket.once('connect', () => end(true))
		})
		sent.once('close', () => end(false))
	})
}

function pass(from: Readable, to: Duplex): void {
	from.on('error', () => to.destroy())
	from.once('close', () => {
		to.end()
		setTimeout(() => to.destroy(), DRAIN_MS).unref()
	})
	from.pipe(to)
}

function headOf({ statusCode, statusMessage }: IncomingMessage, headers: readonly string[]): string {
	const lines = pairsOf(headers).map(([name, value]) => `${name}: ${value}\r\n`)
	return `HTTP/1.1 ${statusCode} ${statusMessage}\r\n${lines.join('')}\r\n`
}
