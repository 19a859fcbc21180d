/**
 * A model server and an MCP server in one, for runs that call a tool in each of `STEPS` steps. They count requests, and detect that a
 * finished step is repeated: the model has then already seen its result.
 */
import { createServer } from 'node:http'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import { listenOnLoopback, unlessReset } from './loopback.ts'

export const STEPS = 3

export interface ChaosModel {
	/** For `base_url` of a provider. */
	url: string
	/** The URL of the MCP server with the tool `note`. */
	tools: string
	/** Calls of the model and of the tool, by run and step. */
	asked: Map<string, number>
	noted: Map<string, number>
	/** Calls of the tool that were reported to the model as interrupted by a crash. */
	interrupted: Set<string>
	/** Calls that repeat a finished step. */
	repeated: string[]
	stop(): void
}

interface Body {
	messages: { role: string; content: unknown }[]
}

/** A prompt is `chaos N`; each call of the model takes up to `most_ms`. */
export async function startChaosModel(most_ms: number): Promise<ChaosModel> {
	/** The number of results that the model has seen, by run. */
	const seen = new Map<string, number>()
	const model: Omit<ChaosModel, 'url' | 'tools' | 'stop'> = {
		asked: new Map(),
		noted: new Map(),
		interrupted: new Set(),
		repeated: [],
	}
	const count = (counts: Map<string, number>, key: string): void => void counts.set(key, (counts.get(key) ?? 0) + 1)

	const answer = async ({ messages }: Body, response: ServerResponse): Promise<void> => {
		const text = JSON.stringify(messages)
		const run = /chaos (\d+)/.exec(text)?.[1] ?? ''
		const toolMessages = messages.filter(({ role }) => role === 'tool')
		const results = toolMessages.length
		for (const [step, { content }] of toolMessages.entries())
			if (!JSON.stringify(content).includes(`noted ${run}/${step}`)) model.interrupted.add(`${run}/${step}`)
		count(model.asked, `${run}/${results}`)
		const before = seen.get(run) ?? 0
		if (results < before) model.repeated.push(`the model was asked for step ${results} of run ${run} after ${before}`)
		seen.set(run, Math.max(before, results))
		await pause(Math.random() * most_ms)
		response.writeHead(200, { 'content-type': 'text/event-stream' })
		const send = (delta: object, finish_reason: string | null): void => {
			const choices = [{ index: 0, delta, finish_reason }]
			const chunk = { id: 'chaos', object: 'chat.completion.chunk', created: 0, model: 'chaos', choices }
			response.write(`data: ${JSON.stringify(chunk)}\n\n`)
		}
		send({ role: 'assistant', content: 'Well, ' }, null)
		if (results < STEPS) {
			const call = { name: 'mcp__tools__note', arguments: JSON.stringify({ text: `${run}/${results}` }) }
			send({ tool_calls: [{ index: 0, id: `call_${results}`, type: 'function', function: call }] }, null)
			send({}, 'tool_calls')
		} else {
			send({ content: `done ${run}` }, null)
			send({}, 'stop')
		}
		response.end('data: [DONE]\n\n')
	}

	const serveTool = ({ id, method, params }: Rpc, response: ServerResponse): void => {
		if (id === undefined) return void response.writeHead(202).end()
		const { protocolVersion, arguments: { text = '' } = {} } = params ?? {}
		if (method === 'tools/call') {
			count(model.noted, text)
			const [run = '', step] = text.split('/')
			if (Number(step) < (seen.get(run) ?? 0)) model.repeated.push(`the tool was called for ${text} again`)
		}
		const schema = { type: 'object', properties: { text: { type: 'string' } } }
		const results: Record<string, object> = {
			initialize: { protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'tools', version: '1.0.0' } },
			'tools/list': { tools: [{ name: 'note', description: 'Notes it.', inputSchema: schema }] },
			'tools/call': { content: [{ type: 'text', text: `noted ${text}` }] },
		}
		response.writeHead(200, { 'content-type': 'application/json' })
		response.end(JSON.stringify({ jsonrpc: '2.0', id, result: results[method] ?? {} }))
	}

	const server = createServer((request, response) => {
		bodyOf(request)
			.then((body) => {
				if (request.method !== 'POST') response.writeHead(405).end()
				else if (request.url === '/mcp') serveTool(JSON.parse(body) as Rpc, response)
				else return answer(JSON.parse(body) as Body, response)
			})
			.catch(unlessReset)
	})
	const { url, stop } = await listenOnLoopback(server)
	return { ...model, url: `${url}/v1`, tools: `${url}/mcp`, stop: () => void stop() }
}

interface Rpc {
	id?: number
	method: string
	params?: { protocolVersion?: string; arguments?: { text?: string } }
}

async function bodyOf(request: IncomingMessage): Promise<string> {
	let text = ''
	for await (const part of request.setEncoding('utf8')) text += String(part)
	return text
}
