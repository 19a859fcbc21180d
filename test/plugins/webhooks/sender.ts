/** The other side of a webhook: whoever registers it, and the service that sends deliveries. */
import { createHmac } from 'node:crypto'
import { connect } from 'node:net'
import { once } from 'node:events'
import type { Socket } from 'node:net'
import type { NewWebhook } from '../../../plugins/webhooks/contract.ts'
import type { Answer, Reply, TestGateway } from '../../support/gateway.ts'

type Gateway = Pick<TestGateway, 'request'>

export const sign = (secret: string, body: string | Buffer): string =>
	`sha256=${createHmac('sha256', secret).update(body).digest('hex')}`

export interface Hook extends NewWebhook {
	agent: string
	/** Where the API has it. */
	path: string
}

/** The agent registers it in a run of the offline provider, and a person asks for a secret of their own. */
export async function makeHook(gateway: Gateway, agent: string, slug = 'hook'): Promise<Hook> {
	await gateway.request('POST', '/v1/agents', { body: { name: agent } })
	await call(gateway, agent, 'webhook.register', { slug })
	const path = `/v1/agents/${agent}/webhooks/${slug}`
	const { body } = await gateway.request('POST', `${path}/rotate`)
	return { ...(body as NewWebhook), agent, path }
}

/** Lets an agent of the offline provider call a tool. Answers with what the tool answered, as a person sees it. */
export async function call(gateway: Gateway, agent: string, tool: string, args: object): Promise<string> {
	const prompt = `/tool ${tool} ${JSON.stringify(args)}`
	const { run_id } = (await gateway.request('POST', `/v1/agents/${agent}/runs`, { body: { prompt } })).body
	return (await ended(gateway, run_id)).answer
}

export async function ended(gateway: Gateway, run_id: string): Promise<Answer> {
	for (;;) {
		const { body } = await gateway.request('GET', `/v1/runs/${run_id}`)
		if (['completed', 'failed', 'stopped'].includes(body.status)) return body
		await new Promise((resolve) => setTimeout(resolve, 5))
	}
}

/** `body` is sent as JSON unless it is text or bytes. A header that is undefined is left out. */
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

/** One request on a socket of its own: `parts` are written one after another. Reads one answer; the socket stays open. */
export async function openRaw(
	url: string,
	...parts: (string | Buffer)[]
): Promise<{ socket: Socket; answer: Promise<RawAnswer>; closed: Promise<void> }> {
	const { hostname, port } = new URL(url)
	const socket = connect(Number(port), hostname)
	await once(socket, 'connect')
	socket.on('error', () => {}) // the gateway hangs up on what it does not read
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
