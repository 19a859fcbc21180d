/** A model server with a small context window. Independently of the gateway's estimate, it counts four characters as a token. */
import { createServer } from 'node:http'
import type { Test } from 'tap'
import { listenOnLoopback, unlessReset } from './loopback.ts'
import { withoutContext } from './model-messages.ts'

export interface SmallMessage {
	role: string
	content: string | null
	tool_calls?: { function: { name: string } }[]
}

export interface SmallRequest {
	messages: SmallMessage[]
	tools?: unknown[]
}

/** A text, a tool call, or a server error. */
export type SmallReply = string | { name: string; arguments: string } | { status: number; message: string }

export interface SmallModel {
	url: string
	requests: SmallRequest[]
	/** Requests that were longer than the window. */
	refused(): number
	stop(): Promise<void>
}

export async function startSmallModel(
	t: Test,
	window: number,
	reply: (request: SmallRequest) => SmallReply | Promise<SmallReply>,
): Promise<SmallModel> {
	const requests: SmallRequest[] = []
	let refused = 0
	let calls = 0
	const server = createServer((request, response) => {
		const answerOne = async (): Promise<void> => {
			let text = ''
			for await (const part of request.setEncoding('utf8')) text += String(part)
			const body = JSON.parse(text) as SmallRequest
			const tokens = Math.ceil(JSON.stringify([body.messages, body.tools]).length / 4)
			requests.push(body)
			const fail = (status: number, message: string, code: string): void => {
				response.writeHead(status, { 'content-type': 'application/json' })
				response.end(JSON.stringify({ error: { message, code, type: 'invalid_request_error' } }))
			}
			if (tokens > window) {
				refused++
				const message = `This model's maximum context length is ${window} tokens; your request has ${tokens}.`
				return fail(400, message, 'context_length_exceeded')
			}
			const answer = await reply(body)
			if (typeof answer === 'object' && 'status' in answer) return fail(answer.status, answer.message, 'refused')
			response.writeHead(200, { 'content-type': 'text/event-stream' })
			const send = (delta: object, finish_reason: string | null, more = {}): void => {
				const choices = [{ index: 0, delta, finish_reason }]
				const chunk = { id: 'x', object: 'chat.completion.chunk', created: 0, model: 'small', choices, ...more }
				response.write(`data: ${JSON.stringify(chunk)}\n\n`)
			}
			const usage = { usage: { prompt_tokens: tokens, completion_tokens: 20, total_tokens: tokens + 20 } }
			if (typeof answer === 'string') {
				send({ role: 'assistant', content: answer }, null)
				send({}, 'stop', usage)
			} else {
				const call = { index: 0, id: `call_${++calls}x${Date.now().toString(36)}`, type: 'function', function: answer }
				send({ role: 'assistant', tool_calls: [call] }, null)
				send({}, 'tool_calls', usage)
			}
			response.end('data: [DONE]\n\n')
		}
		answerOne().catch(unlessReset)
	})
	const { url, stop } = await listenOnLoopback(server)
	t.teardown(stop)
	return { url: `${url}/v1`, requests, refused: () => refused, stop }
}

/** The latest prompt of a user, and the tool results since then. */
export function latest({ messages }: SmallRequest): { prompt: string; results: string[] } {
	const asked = messages.findLastIndex(({ role }) => role === 'user')
	const own = (messages[asked]?.content ?? '').replace(/^<earlier>[^]*?<\/earlier>\n\n/, '')
	const results = messages.slice(asked + 1).filter(({ role }) => role === 'tool')
	return { prompt: withoutContext(own), results: results.map(({ content }) => content ?? '') }
}

/** The prompt of a request for a summary; undefined for any other request. */
export function summaryAsked({ messages }: SmallRequest): string | undefined {
	const isAsked = messages[0]?.content?.startsWith('You write the summary that an agent keeps') ?? false
	return isAsked ? (messages.at(-1)?.content ?? '') : undefined
}

/** The section of gateway.yaml for this server. */
export function smallProvider({ url }: Pick<SmallModel, 'url'>): string {
	return `providers:\n  small:\n    kind: openai\n    base_url: ${url}\n    api_key: test\n    model: small\n`
}
