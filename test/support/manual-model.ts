/**
 * A model server that answers on the test's command, to test what happens during a model call. It implements streaming chat
 * completions of the OpenAI API over HTTP. For tests that need no waiting, use model-server.ts.
 */
import { createServer } from 'node:http'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { listenOnLoopback, unlessReset } from './loopback.ts'
import { withoutContext } from './model-messages.ts'
import { openWatch } from './wait.ts'

export interface ManualCall {
	/** The user's last message, without the gateway's additions. */
	prompt: string
	body: Record<string, unknown>
	/** Streams another part of the answer. */
	say(content: string): void
	/** Ends the answer with this text. */
	answer(content: string): void
	/** Ends the answer with a tool call. */
	callTool(name: string, args: string, id?: string): void
	/** Settles if the client disconnects before the answer is complete. */
	hungUp: Promise<void>
	open: boolean
}

export interface ManualModel {
	/** For `base_url` of a provider. */
	url: string
	/** All calls so far, oldest first. */
	calls: ManualCall[]
	/** Settles once the n-th call (1 is the first) with that prompt has arrived and the first part of its answer was sent. */
	called(prompt: string, n?: number): Promise<ManualCall>
	stop(): Promise<void>
}

export async function startManualModel(): Promise<ManualModel> {
	const calls: ManualCall[] = []
	const watch = openWatch()
	const server = createServer((request, response) => {
		receive(request, response)
			.then((call) => {
				calls.push(call)
				watch.check()
			})
			.catch(unlessReset)
	})
	const { url, stop } = await listenOnLoopback(server)
	return {
		url: `${url}/v1`,
		calls,
		called(prompt, n = 1) {
			const prompts = (): string => calls.map((call) => JSON.stringify(call.prompt)).join(', ')
			return watch.until(
				() => calls.filter((call) => call.prompt === prompt)[n - 1],
				() => `no call with the prompt "${prompt}" arrived; calls: ${prompts()}`,
			)
		},
		stop,
	}
}

async function receive(request: IncomingMessage, response: ServerResponse): Promise<ManualCall> {
	let text = ''
	for await (const part of request.setEncoding('utf8')) text += String(part)
	const body = JSON.parse(text) as { messages: { role: string; content: string }[] }
	const { promise, resolve } = Promise.withResolvers<void>()
	const call: ManualCall = {
		prompt: withoutContext(body.messages.findLast((message) => message.role === 'user')?.content ?? ''),
		body,
		say: (content) => send({ content }, null),
		answer: (content) => end({ content }, 'stop'),
		callTool: (name, args, id = 'call_1') =>
			end({ tool_calls: [{ index: 0, id, type: 'function', function: { name, arguments: args } }] }, 'tool_calls'),
		hungUp: promise,
		open: true,
	}
	response.once('close', () => {
		call.open = false
		if (!response.writableFinished) resolve()
	})
	response.writeHead(200, { 'content-type': 'text/event-stream' })
	send({ role: 'assistant', content: 'Well, ' }, null)
	return call

	function end(delta: object, finish_reason: string): void {
		send(delta, null)
		send({}, finish_reason)
		call.open = false
		response.end('data: [DONE]\n\n')
	}

	function send(delta: object, finish_reason: string | null): void {
		const choices = [{ index: 0, delta, finish_reason }]
		const chunk = { id: 'held', object: 'chat.completion.chunk', created: 0, model: 'held', choices }
		response.write(`data: ${JSON.stringify(chunk)}\n\n`)
	}
}
