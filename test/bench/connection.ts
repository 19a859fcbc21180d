/**
 * One keep-alive connection, one request on it at a time. Client and server share the cores, so what the client costs
 * is missing in what is measured: this one takes about a tenth of `fetch`.
 */
import { once } from 'node:events'
import { connect } from 'node:net'
import type { Socket } from 'node:net'

export interface Reply {
	status: number
	body: string
}

export class Connection {
	readonly #socket: Socket
	readonly #host: string
	#waiting: PromiseWithResolvers<Reply> | null = null
	#received = ''

	private constructor(socket: Socket, host: string) {
		this.#socket = socket
		this.#host = host
		socket.setNoDelay(true)
		socket.setEncoding('latin1')
		socket.on('data', (text: string) => this.#take(text))
		socket.on('close', () => this.#waiting?.reject(new Error('the server closed the connection')))
	}

	/** `url` is the server's, such as `http://127.0.0.1:3000`. */
	static async open(url: string): Promise<Connection> {
		const { hostname, port, host } = new URL(url)
		const socket = connect(Number(port), hostname)
		await once(socket, 'connect')
		return new Connection(socket, host)
	}

	get(path: string): Promise<Reply> {
		return this.#send(`GET ${path} HTTP/1.1\r\nhost: ${this.#host}\r\n\r\n`)
	}

	post(path: string, body: unknown): Promise<Reply> {
		return this.sendText('POST', path, JSON.stringify(body))
	}

	/** `headers`: further ones. */
	sendText(method: string, path: string, text: string, headers: Record<string, string> = {}): Promise<Reply> {
		const all = { 'content-type': 'application/json', ...headers, 'content-length': Buffer.byteLength(text) }
		const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`)
		return this.#send(`${method} ${path} HTTP/1.1\r\nhost: ${this.#host}\r\n${lines.join('')}\r\n${text}`)
	}

	close(): void {
		this.#socket.destroy()
	}

	#send(request: string): Promise<Reply> {
		if (this.#waiting) throw new Error('a request is under way on this connection already')
		if (this.#socket.destroyed) throw new Error('the server has closed the connection')
		this.#waiting = Promise.withResolvers()
		this.#socket.write(request)
		return this.#waiting.promise
	}

	/** An answer that is measured has a content-length, or ends with an empty chunk; then its body has the chunks' frames. */
	#take(text: string): void {
		this.#received += text
		const headEnd = this.#received.indexOf('\r\n\r\n')
		if (headEnd < 0) return
		const head = this.#received.slice(0, headEnd)
		const isChunked = /\r\ntransfer-encoding: chunked/i.test(head)
		if (isChunked && !this.#received.endsWith('\r\n0\r\n\r\n')) return
		const length = Number(/\r\ncontent-length: (\d+)/i.exec(head)?.[1] ?? 0)
		const end = isChunked ? this.#received.length : headEnd + 4 + length
		if (this.#received.length < end) return
		const body = this.#received.slice(headEnd + 4, end)
		this.#received = this.#received.slice(end)
		const waiting = this.#waiting
		this.#waiting = null
		waiting?.resolve({ status: Number(head.slice(9, 12)), body })
	}
}

/** Throws where the answer is none of success. */
export function bodyOf<T>({ status, body }: Reply): T {
	if (status < 200 || status > 299) throw new Error(`the gateway answered ${status}: ${body}`)
	return JSON.parse(body) as T
}
