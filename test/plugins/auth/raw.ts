/** Raw requests, for what an HTTP client never sends. */
import { connect } from 'node:net'
import type { Answer } from '../../support/gateway.ts'

export interface RawReply {
	status: number
	/** By name in lower case. Of several with one name, the last. */
	headers: Record<string, string>
	/** The parsed body; undefined if it is not a JSON object. */
	body: Answer
}

/** Sends `head` (the request line and header lines), and reads the response. `to`: an address of this machine instead of that in `url`. */
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
