/**
 * A real OpenAI-compatible server (`@copilotkit/aimock`) on a free port, with answers that a test defines.
 *
 *     const model = await startModelServer()
 *     t.teardown(() => model.stop())
 *     model.on('weather', { tools: [{ name: 'memory_stm_read', arguments: {} }] }, 'It rains.')
 *
 * answers the first request whose latest user message contains "weather" with a tool call, and each later one with "It rains.". A
 * request without a matching answer gets 404. Tools have the names that a model sees (`memory_stm_read`).
 */
import { LLMock } from '@copilotkit/aimock'
import type { ChatCompletionRequest, Fixture, FixtureOpts } from '@copilotkit/aimock'

export type Reply =
	/** The text of a whole answer. */
	| string
	| Answer
	/** An error with that HTTP status; `retryAfter` (429 only, default 1) in seconds. */
	| { status: number; message?: string; code?: string; retryAfter?: number }
	/** Status 200 with a body that is not an event stream. */
	| { malformed: true }

export interface Answer {
	text?: string
	/** `arguments` may be text, for invalid JSON. */
	tools?: { name: string; arguments: object | string; id?: string }[]
	/** Default: counted by aimock. */
	usage?: { prompt_tokens: number; completion_tokens: number }
	finishReason?: string
	/** The connection breaks after this many chunks. */
	cutAfterChunks?: number
	/** Characters of a chunk. */
	chunkSize?: number
	/** Pause before each chunk. */
	pauseMs?: number
}

export interface ModelServer {
	/** For `base_url`; ends in /v1. */
	readonly url: string
	/** The n-th matching request gets the n-th reply; the last reply is repeated. */
	on(prompt: string | RegExp, ...replies: Reply[]): void
	/** Bodies of the requests so far, oldest first. With `prompt`, only of those whose latest user message contains it. */
	requests(prompt?: string): ChatCompletionRequest[]
	/** For all other features of aimock. */
	readonly mock: LLMock
	stop(): Promise<void>
}

export async function startModelServer(): Promise<ModelServer> {
	// No entry is dropped: tests count them.
	const mock = new LLMock({ port: 0, host: '127.0.0.1', journalMaxEntries: 0 })
	await mock.start()
	return {
		url: `${mock.url}/v1`,
		mock,
		on(prompt, ...replies) {
			const last = replies.length - 1
			for (const [at, reply] of replies.entries()) {
				const match = { userMessage: prompt, ...(at < last && { sequenceIndex: at }) }
				mock.on(match, responseOf(reply), optionsOf(reply))
			}
		},
		requests(prompt = '') {
			const bodies = mock.getRequests().map((entry) => entry.body as ChatCompletionRequest)
			return bodies.filter((body) => latestPrompt(body).includes(prompt))
		},
		stop: () => mock.stop(),
	}
}

function responseOf(reply: Reply): Exclude<Fixture['response'], (...args: never[]) => unknown> {
	if (typeof reply === 'string') return { content: reply }
	if ('malformed' in reply) return { content: '' }
	if ('status' in reply) {
		const { status, message = `status ${status}`, code, retryAfter } = reply
		const error = { message, type: 'scripted', ...(code !== undefined && { code }) }
		return { error, status, ...(retryAfter !== undefined && { retryAfter }) }
	}
	const { text, tools, usage, finishReason } = reply
	const rest = { ...(usage && { usage }), ...(finishReason !== undefined && { finishReason }) }
	if (!tools) return { content: text ?? '', ...rest }
	const toolCalls = tools.map((tool) => ({
		...tool,
		arguments: typeof tool.arguments === 'string' ? tool.arguments : JSON.stringify(tool.arguments),
	}))
	return text === undefined ? { toolCalls, ...rest } : { content: text, toolCalls, ...rest }
}

function optionsOf(reply: Reply): FixtureOpts {
	if (typeof reply === 'string' || 'status' in reply) return {}
	if ('malformed' in reply) return { chaos: { malformedRate: 1 } }
	const { cutAfterChunks, chunkSize, pauseMs } = reply
	return {
		...(cutAfterChunks !== undefined && { truncateAfterChunks: cutAfterChunks }),
		...(chunkSize !== undefined && { chunkSize }),
		...(pauseMs !== undefined && { latency: pauseMs }),
	}
}

function latestPrompt({ messages }: ChatCompletionRequest): string {
	const content = messages.findLast((message) => message.role === 'user')?.content
	return typeof content === 'string' ? content : ''
}
