/**
 * An OpenAI-compatible model of zero latency, unless it is given one (`delay`, in milliseconds): whatever it is asked, it streams the same 40 pieces, made once, each as a
 * chunk of its own, all in one write. It only has to cost as little as possible, since both sides of a comparison wait
 * for it on the same cores.
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
const lines = [...chunks.map((chunk) => JSON.stringify(chunk)), '[DONE]'].map((data) => `data: ${data}\n\n`)

let delayMs = 0

const server = createServer((request, response) => {
	request.resume()
	const answer = (): void => {
		response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' })
		response.socket?.cork()
		for (const line of lines) response.write(line)
		response.end()
		response.socket?.uncork()
	}
	request.on('end', () => {
		if (delayMs === 0) answer()
		else setTimeout(answer, delayMs)
	})
})
server.keepAliveTimeout = 60_000
server.listen(0, '127.0.0.1')
await once(server, 'listening')

answerWith({
	url: () => `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
	delay: (ms) => (delayMs = Number(ms)),
})
