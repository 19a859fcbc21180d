import type { Duplex } from 'node:stream'
import { http } from './node-http.ts'

/**
 * On every answer: a page of another origin cannot embed or frame it, and a browser trusts its type and does not send its address
 * to other sites.
 */
export const safetyHeaders = {
	'cross-origin-resource-policy': 'same-origin',
	'x-frame-options': 'DENY',
	'x-content-type-options': 'nosniff',
	'x-xss-protection': '0',
	'referrer-policy': 'no-referrer',
} as const

/** The time that a client has to read the answer before its socket is destroyed. */
const TAKE_MS = 1_000

/** Responds with JSON on the bare socket of a request, such as an upgrade, and closes the socket. */
export function answerSocket(socket: Duplex, status: number, body: object, headers: Record<string, unknown>): void {
	const json = JSON.stringify(body)
	const lines = Object.entries({
		...headers,
		...safetyHeaders,
		'content-type': 'application/json; charset=utf-8',
		'content-length': Buffer.byteLength(json),
		connection: 'close',
	}).map(([header, value]) => `${header}: ${String(value)}\r\n`)
	socket.end(`HTTP/1.1 ${status} ${http.STATUS_CODES[status]}\r\n${lines.join('')}\r\n${json}`)
	// The client may never close it. Anything that it still sends is ignored.
	const cut = setTimeout(() => socket.destroy(), TAKE_MS)
	socket.once('close', () => clearTimeout(cut))
	socket.resume()
}
