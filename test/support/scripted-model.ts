/**
 * One HTTP server for many scripted model servers, for behaviour that mock packages do not support. Each script has its own address,
 * and answers all requests to it.
 */
import { createServer } from 'node:http'
import type { IncomingHttpHeaders } from 'node:http'
import { listenOnLoopback } from './loopback.ts'

export interface ScriptedRequest {
	/** The path below the script's address. */
	path: string
	query: URLSearchParams
	headers: IncomingHttpHeaders
	// oxlint-disable-next-line typescript/no-explicit-any -- each test knows its dialect
	body: any
}

export type ScriptedReply = {
	status?: number
	headers?: Record<string, string>
} & ({ sse: readonly unknown[] } | { json: unknown } | { text: string; type?: string })

/** A chat completion of the OpenAI API in one piece. */
export function chatCompletion(
	message: object,
	finish_reason = 'stop',
	usage?: { prompt_tokens: number; completion_tokens: number },
): ScriptedReply {
	const choice = { index: 0, message: { role: 'assistant', ...message }, finish_reason }
	return { json: { choices: [choice], ...(usage && { usage }) } }
}

export interface ScriptedModels {
	/** `reply` gets the number of the request, from 0. Returns the script's address and its recorded requests. */
	add(reply: (request: ScriptedRequest, n: number) => ScriptedReply): { url: string; requests: ScriptedRequest[] }
	stop(): Promise<void>
}

export async function startScriptedModels(): Promise<ScriptedModels> {
	const scripts: { reply: Parameters<ScriptedModels['add']>[0]; requests: ScriptedRequest[] }[] = []
	const server = createServer((request, response) => {
		let text = ''
		request.on('data', (part) => (text += part))
		request.on('end', () => {
			const { pathname, searchParams } = new URL(request.url ?? '/', 'http://localhost')
			const [, number, path = ''] = /^\/(\d+)\/v1(.*)$/.exec(pathname) ?? []
			const script = scripts[Number(number)]
			if (!script) return response.writeHead(599).end()
			const asked = { path, query: searchParams, headers: request.headers, body: JSON.parse(text || 'null') }
			const reply = script.reply(asked, script.requests.push(asked) - 1)
			const [type, body] = bodyOf(reply)
			response.writeHead(reply.status ?? 200, { 'content-type': type, ...reply.headers }).end(body)
		})
	})
	const { url, stop } = await listenOnLoopback(server)
	return {
		add(reply) {
			const requests: ScriptedRequest[] = []
			return { url: `${url}/${scripts.push({ reply, requests }) - 1}/v1`, requests }
		},
		stop,
	}
}

function bodyOf(reply: ScriptedReply): [type: string, body: string] {
	if ('json' in reply) return ['application/json', JSON.stringify(reply.json)]
	if ('text' in reply) return [reply.type ?? 'text/plain', reply.text]
	return ['text/event-stream', reply.sse.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('')]
}
