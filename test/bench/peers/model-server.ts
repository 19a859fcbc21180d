/**
 * An OpenAI-compatible model server with zero latency, or with a `delay` in milliseconds. It streams the same 40 prepared chunks to
 * every request, in one write. It must be as cheap as possible, since both sides of a comparison wait for it on the same cores. Below
 * `/tools` it first calls the tool of `bench-tool-plugin.ts`, once in each run.
 */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { answerWith } from '../peer.ts'

const PIECES = 40

const head = { id: 'chatcmpl-bench', object: 'chat.completion.chunk', created: 1_700_000_000, model: 'bench' }
const piece = (delta: object, finish_reason: string | null = null): object => ({
	...head,
	choices: [{ index: 0, delta, finish_reason }],
})
const chunks = [
	piece({ role: 'assistant', content: '' }),
	...Array.from({ length: PIECES }, (_, index) => piece({ content: `word${index} ` })),
	piece({}, 'stop'),
	{ ...head, choices: [], usage: { prompt_tokens: 9, completion_tokens: PIECES, total_tokens: PIECES + 9 } },
]
const linesOf = (all: object[]): string[] =>
	[...all.map((chunk) => JSON.stringify(chunk)), '[DONE]'].map((data) => `data: ${data}\n\n`)
const answer = linesOf(chunks)
/** By the tool's name, whose form depends on the client. */
const calls = new Map<string, string[]>()

function callOf(name: string): string[] {
	const known = calls.get(name)
	if (known) return known
	const call = { index: 0, id: 'call_bench', type: 'function', function: { name, arguments: '{"text":"hello"}' } }
	const lines = linesOf([
		piece({ role: 'assistant', content: null, tool_calls: [call] }),
		piece({}, 'tool_calls'),
		...chunks.slice(-1),
	])
	calls.set(name, lines)
	return lines
}

/** The lines to stream for a request with this body. */
function linesFor(body: string): string[] {
	if (body.includes('"role":"tool"')) return answer
	const [, name] = /"name":"(bench[^"]*echo)"/.exec(body) ?? []
	if (name === undefined) throw new Error(`the request does not offer the tool of the bench: ${body.slice(0, 1_000)}`)
	return callOf(name)
}

let delayMs = 0

const server = createServer((request, response) => {
	let body = ''
	const reads = request.url?.startsWith('/tools/') === true
	if (reads) request.setEncoding('utf8').on('data', (text: string) => (body += text))
	else request.resume()
	const respond = (): void => {
		const lines = reads ? linesFor(body) : answer
		response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' })
		response.socket?.cork()
		for (const line of lines) response.write(line)
		response.end()
		response.socket?.uncork()
	}
	request.on('end', () => {
		if (delayMs === 0) respond()
		else setTimeout(respond, delayMs)
	})
})
server.keepAliveTimeout = 60_000
server.listen(0, '127.0.0.1')
await once(server, 'listening')

const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
answerWith({
	url: () => `${address}/v1`,
	'url with a tool': () => `${address}/tools/v1`,
	delay: (ms) => (delayMs = Number(ms)),
})
