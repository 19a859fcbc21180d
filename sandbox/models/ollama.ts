/** Ollama's native API, whose requests set the context size. Its OpenAI-compatible API truncates long requests without an error. */
import { malformed } from './answer.ts'
import { providerOf } from './dialect.ts'
import { StreamError } from './failures.ts'
import type { ServerError } from './failures.ts'
import { bearer } from './http.ts'
import { chatBody } from './ollama-request.ts'
import { ChatReader } from './openai-answer.ts'
import type { Provider } from './provider.ts'
import { isObject, listIn, objectIn } from './values.ts'

export const ollama: Provider = providerOf({
	kind: 'ollama',
	optional: ['think'],
	expected: 'a message; is base_url right? It ends in /api',
	requestOf: (order, request, traits) => ({
		path: '/chat',
		headers: bearer(order),
		body: chatBody(order, request, traits),
	}),
	readerFor(answer, tools) {
		const reader = new ChatReader(answer, tools)
		const take = (chunk: unknown): void => reader.take(chunkOf(chunk))
		return { take, takeWhole: take, end: () => reader.end() }
	},
	named,
})

/** The server's error does not name the field. */
function named(reported: ServerError): ServerError {
	return reported.param === undefined && /\bthink/i.test(reported.message) ? { ...reported, param: 'think' } : reported
}

/** Converts a chunk to one of a chat completion, so that one reader handles tool calls and reasoning within text. */
function chunkOf(value: unknown): object {
	if (!isObject(value)) throw malformed('a chunk is not an object')
	if (typeof value.error === 'string') throw new StreamError({ message: value.error })
	const { content, thinking, tool_calls } = objectIn(value.message)
	const calls = listIn(tool_calls).map(objectIn)
	const delta = {
		content,
		...(typeof thinking === 'string' && thinking !== '' && { reasoning_content: thinking }),
		// Each call arrives complete, usually without an id.
		tool_calls: calls.map(({ id, function: made }) => ({ id, index: objectIn(made).index, function: made })),
	}
	if (value.done !== true) return { choices: [{ delta, finish_reason: null }] }
	const { prompt_eval_count: prompt_tokens, eval_count: completion_tokens, done_reason = 'stop' } = value
	return { choices: [{ delta, finish_reason: done_reason }], usage: { prompt_tokens, completion_tokens } }
}
