/** Registers webhooks, and sends deliveries as another service. */
import { createHmac } from 'node:crypto'
import { connect } from 'node:net'
import { once } from 'node:events'
import type { Socket } from 'node:net'
import type { NewWebhook } from '../../../plugins/webhooks/contract.ts'
import { endedRun } from '../../support/ended-run.ts'
import type { Answer, Reply, TestGateway } from '../../support/gateway.ts'

type Gateway = Pick<TestGateway, 'url' | 'request'>

export const sign = (secret: string, body: string | Buffer): string =>
	`sha256=${createHmac('sha256', secret).update(body).digest('hex')}`

export interface Hook extends NewWebhook {
	agent: string
	/** Its path in the API. */
	path: string
}

/** Registers a webhook in a run of the offline provider, and rotates it, which returns the secret. */
export async function makeHook(gateway: Gateway, agent: string, slug = 'hook'): Promise<Hook> {
	await gateway.request('POST', '/v1/agents', { body: { name: agent } })
	await call(gateway, agent, 'webhook.register', { slug })
	const path = `/v1/agents/${agent}/webhooks/${slug}`
	const { body } = await gateway.request('POST', `${path}/rotate`)
	return { ...(body as NewWebhook), agent, path }
}

/** Calls a tool in a run of the offline provider. Returns the run's answer, which contains the result. */
export async function call(gateway: Gateway, agent: string, tool: string, args: object): Promise<string> {
	const prompt = `/tool ${tool} ${JSON.stringify(args)}`
	const { run_id } = (await gateway.request('POST', `/v1/agents/${agent}/runs`, { body: { prompt } })).body
	return (await endedRun(gateway.url, run_id)).answer
}

/** Sends text and bytes unchanged, any other body as JSON. A header that is undefined is omitted. */
export async function deliver(
	gateway: Gateway,
	{ token, secret }: Pick<Hook, 'token' | 'secret'>,
	body: unknown,
	headers: Record<string, string | undefined> = {},
): Promise<Reply<Answer>> {
	const raw = typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body)
	const all = { 'content-type': 'application/json', 'x-signature': sign(secret, raw), ...headers }
	const given = Object.entries(all).filter((one): one is [string, string] => one[1] !== undefined)
	return gateway.request('POST', `/v1/hooks/${token}`, { body: raw, headers: Object.fromEntries(given) })
}

export interface RawAnswer {
	status: number
	headers: string
	body: Answer
}

/** Writes `parts` of one request to a new socket, one after another. Reads one response; the socket stays open. */
export async function openRaw(
	url: string,
	...parts: (string | Buffer)[]
): Promise<{ socket: Socket; answer: Promise<RawAnswer>; closed: Promise<void> }> {
	const { hostname, port } = new URL(url)
	const socket = connect(Number(port), hostname)
	await once(socket, 'connect')
	socket.on('error', () => {}) // the gateway closes connections whose body it does not read
	const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()))
	const { promise: answer, resolve, reject } = Promise.withResolvers<RawAnswer>()
	answer.catch(() => {})
	let text = ''
	socket.setEncoding('utf8').on('data', (part: string) => {
		text += part
		const at = text.indexOf('\r\n\r\n')
		const length = Number(/content-length: (\d+)/i.exec(text)?.[1] ?? 0)
		if (at < 0 || text.length < at + 4 + length) return
		const body = text.slice(at + 4, at + 4 + length)
		resolve({ status: Number(text.slice(9, 12)), headers: text.slice(0, at), body: body && JSON.parse(body) })
	})
	void closed.then(() => reject(new Error(`closed without an answer: ${text}`)))
	for (const part of parts) socket.write(part)
	return { socket, answer, closed }
}

/** The head of a delivery, for `openRaw`. */
export function head(token: string, ...lines: string[]): string {
	return [`POST /v1/hooks/${token} HTTP/1.1`, 'host: localhost', ...lines, '', ''].join('\r\n')
}
