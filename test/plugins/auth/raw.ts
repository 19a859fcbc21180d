/** Requests byte by byte, for what a proper client would never send. */
import { connect } from 'node:net'
import type { Answer } from '../../support/gateway.ts'

export interface RawReply {
	status: number
	/** By name in lower case; the last of several. */
	headers: Record<string, string>
	/** The parsed body; undefined where there is none, or none of JSON. */
	body: Answer
}

/**
 * Sends `head` (the request line and header lines) and reads the answer
 * to its end. `to`: another address of this machine than the one in `url`.
 */
export async function sendRaw(url: string, head: string[], to?: string): Promise<RawReply> {
	const { hostname, port } = new URL(url)
	const socket = connect(Number(port), to ?? hostname.replace(/^\[|\]$/g, ''))
	socket.write([...head, 'connection: close', '', ''].join('\r\n'))
	let text = ''
	for await (const part of socket.setEncoding('utf8')) text += String(part)
	const [start = '', body = ''] = text.split('\r\n\r\n')
	const headers = start.split('\r\n').map((line) => /^([^:]+): *(.*)$/.exec(line)?.slice(1) ?? ['', ''])
	return {
		headers: Object.fromEntries(headers.map(([name = '', value]) => [name.toLowerCase(), value])) as Record<
			string,
			string
		>,
		status: Number(/^HTTP\/1\.1 (\d+)/.exec(start)?.[1]),
		body: body.startsWith('{') ? JSON.parse(body) : undefined,
	}
}
