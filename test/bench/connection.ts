/**
 * A keep-alive connection with one request at a time. Client and server share the cores, so the cost of the client reduces the
 * measured rates: this client needs about a tenth of the CPU time of `fetch`.
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
	#pending: PromiseWithResolvers<Reply> | null = null
	#received = ''

	private constructor(socket: Socket, host: string) {
		this.#socket = socket
		this.#host = host
		socket.setNoDelay(true)
		socket.setEncoding('latin1')
		socket.on('data', (text: string) => this.#receive(text))
		socket.on('close', () => this.#pending?.reject(new Error('the server closed the connection')))
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

	/** `headers`: additional headers. */
	sendText(method: string, path: string, text: string, headers: Record<string, string> = {}): Promise<Reply> {
		const all = { 'content-type': 'application/json', ...headers, 'content-length': Buffer.byteLength(text) }
		const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`)
		return this.#send(`${method} ${path} HTTP/1.1\r\nhost: ${this.#host}\r\n${lines.join('')}\r\n${text}`)
	}

	close(): void {
		this.#socket.destroy()
	}

	#send(request: string): Promise<Reply> {
		if (this.#pending) throw new Error('a request is already in progress on this connection')
		if (this.#socket.destroyed) throw new Error('the server has closed the connection')
		this.#pending = Promise.withResolvers()
		this.#socket.write(request)
		return this.#pending.promise
	}

	/** Measured answers have a content-length, or end with an empty chunk. A chunked body includes the framing of its chunks. */
	#receive(text: string): void {
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
		const pending = this.#pending
		this.#pending = null
		pending?.resolve({ status: Number(head.slice(9, 12)), body })
	}
}

/** Parses the body. Throws unless the status is 2xx. */
export function bodyOf<T>({ status, body }: Reply): T {
	if (status < 200 || status > 299) throw new Error(`the gateway answered ${status}: ${body}`)
	return JSON.parse(body) as T
}
