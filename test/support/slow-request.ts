/** Requests whose body arrives in parts. */
import { once } from 'node:events'
import { connect } from 'node:net'
import type { Test } from 'tap'
import type { TestGateway } from './gateway.ts'
import { eventually } from './wait.ts'

export interface SlowRequest {
	/** Sends more of the body. */
	write(part: string): void
	/** The complete response, once the gateway has closed the connection. */
	response: Promise<string>
}

/** Sends the head of a POST and the beginning of its body. Settles once the gateway counts it as open. `headers`: lines. */
export async function beginPost(
	t: Test,
	{ url, running }: TestGateway,
	path: string,
	headers: readonly string[],
	begin: string,
): Promise<SlowRequest> {
	const { openRequests } = running.gateway.status
	const before = openRequests()
	const { host, hostname, port } = new URL(url)
	const socket = connect(Number(port), hostname)
	t.teardown(() => socket.destroy())
	await once(socket, 'connect')
	let text = ''
	socket.setEncoding('utf8').on('data', (part: string) => (text += part))
	// An error, such as a reset after the response, is followed by `close`: the text shows whether the response is complete.
	const response = new Promise<string>((resolve) => socket.once('close', () => resolve(text)).on('error', () => {}))
	const head = [`POST ${path} HTTP/1.1`, `host: ${host}`, 'connection: close', ...headers, '', '']
	socket.write(`${head.join('\r\n')}${begin}`)
	await eventually(() => openRequests() === before + 1)
	return { write: (part) => void socket.write(part), response }
}
