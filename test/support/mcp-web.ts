/** A small MCP server over HTTP in the test's process, which records requests. */
import { createServer } from 'node:http'
import type { IncomingHttpHeaders } from 'node:http'
import type { Test } from 'tap'
import { listenOnLoopback, unlessReset } from './loopback.ts'

export interface McpRequest {
	method: string
	url: string
	headers: IncomingHttpHeaders
	/** The JSON-RPC method; empty for a request without a body. */
	rpc: string
	/** The raw body. */
	text: string
}

export interface NotingServer {
	port: number
	/** The server's URL at this name of the loopback address. */
	at(host: string, path?: string): string
	arrived: McpRequest[]
	/** Redirects tool calls (307) to this address from now on. */
	redirectCalls(to: string): void
	/** True: closes all connections and new ones, as if the server was killed. `404`: answers 404, as a proxy does. False: works again. */
	away(now: boolean | '404'): void
}

/** Its only tool, `echo`, returns its argument `text`. */
export async function startNotingServer(t: Test): Promise<NotingServer> {
	const arrived: McpRequest[] = []
	let target: string | undefined
	let isAway: boolean | '404' = false
	const server = createServer((request, response) => {
		void (async () => {
			if (isAway) return void response.writeHead(404).end()
			let text = ''
			for await (const part of request.setEncoding('utf8')) text += String(part)
			const message = text === '' ? {} : (JSON.parse(text) as { id?: number; method?: string; params?: Params })
			const { method = '', url = '', headers } = request
			arrived.push({ method, url, headers, rpc: message.method ?? '', text })
			if (message.method === 'tools/call' && target !== undefined) {
				response.writeHead(307, { location: target }).end()
				return
			}
			if (method !== 'POST') return void response.writeHead(405).end()
			if (message.id === undefined) return void response.writeHead(202).end()
			const result = resultOf(message.method ?? '', message.params)
			response.writeHead(200, { 'content-type': 'application/json' })
			response.end(JSON.stringify({ jsonrpc: '2.0', id: message.id, result }))
		})().catch(unlessReset)
	})
	server.on('connection', (socket) => {
		if (isAway === true) socket.destroy()
	})
	const { port, stop } = await listenOnLoopback(server)
	t.teardown(stop)
	return {
		port,
		at: (host, path = '/mcp') => `http://${host}:${port}${path}`,
		arrived,
		redirectCalls: (to) => void (target = to),
		away(now) {
			isAway = now
			if (isAway === true) server.closeAllConnections()
		},
	}
}

interface Params {
	protocolVersion?: string
	arguments?: { text?: string }
}

function resultOf(method: string, params: Params = {}): object {
	switch (method) {
		case 'initialize':
			return {
				protocolVersion: params.protocolVersion,
				capabilities: { tools: {} },
				serverInfo: { name: 'noting', version: '1.0.0' },
			}
		case 'tools/list':
			return { tools: [{ name: 'echo', description: 'Says it again.', inputSchema: { type: 'object' } }] }
		case 'tools/call':
			return { content: [{ type: 'text', text: params.arguments?.text ?? '' }] }
		default:
			return {}
	}
}
