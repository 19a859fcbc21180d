/** Ollama's native API, whose requests set the context size. Its OpenAI-compatible API truncates long requests without an error. */
import { defined } from '../../core/util/defined.ts'
import { fieldsOf, isObject } from '../../core/util/is-object.ts'
import { wireName } from '../wire-name.ts'
import type { ModelOrder } from '../order.ts'
import { shownOf, textIn } from '../attachments/shown.ts'
import type { AcceptedMedia } from '../attachments/shown.ts'
import { windowOf } from '../context/estimate.ts'
import { malformed } from './answer.ts'
import { providerOf } from './dialect.ts'
import { StreamError } from './failures.ts'
import type { ServerError } from './failures.ts'
import { bearer } from './http.ts'
import { toolsOf } from './openai.ts'
import { ChatReader } from './openai-answer.ts'
import type { ModelRequest, Provider, Turn } from './provider.ts'
import { argumentsIn } from './past-calls.ts'
import { stateOf } from './provider-state.ts'
import { supportedForm } from './traits.ts'
import type { Traits } from './traits.ts'
import { listIn } from './values.ts'

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

const ACCEPTED: AcceptedMedia = {
	images: new Set(['image/png', 'image/jpeg', 'image/webp']),
	files: new Set(),
	audio: new Set(),
}

export function chatBody(order: ModelOrder, request: ModelRequest, traits: Traits): Record<string, unknown> {
	const { system, tools, turns } = request
	const params = { ...order.params, ...order.sampling } as Record<string, unknown>
	const { temperature, top_p, max_tokens, stop, seed, presence_penalty, frequency_penalty, reasoning_effort } = params
	const { options, ...extra } = order.extra_body ?? {}
	const { json } = supportedForm(request.form, traits)
	const body: Record<string, unknown> = {
		model: order.model,
		messages: [
			...(system === null ? [] : [{ role: 'system', content: system }]),
			...turns.map((turn) => messageOf(order, turn, request, traits)),
		],
		...(tools.length > 0 && { tools: toolsOf(tools, traits) }),
		stream: traits.streaming !== false,
		// With a format, models call no tools.
		...(json && tools.length === 0 && { format: json.schema ?? 'json' }),
		...(typeof reasoning_effort === 'string' && { think: thinkOf(order.model, reasoning_effort) }),
		...extra,
		options: {
			num_ctx: order.context_window ?? windowOf(order.model),
			...defined({ num_predict: max_tokens, temperature, top_p, seed, presence_penalty, frequency_penalty }),
			...(stop !== undefined && { stop: [stop].flat() }),
			...fieldsOf(options),
		},
	}
	for (const field of traits.drop ?? []) delete body[field]
	return body
}

function messageOf(order: ModelOrder, turn: Turn, request: ModelRequest, traits: Traits): object {
	const shown = shownOf(turn, request, traits, ACCEPTED)
	const content = textIn(shown)
	const images = shown.flatMap((one) => (one.kind === 'image' ? [one.base64] : []))
	const more = images.length > 0 ? { images } : {}
	if (turn.role === 'user') return { role: 'user', content, ...more }
	if (turn.role === 'tool') return { role: 'tool', tool_name: wireName(turn.name), content, ...more }
	const { reasoning_content: thinking } = stateOf(order, turn, traits)
	const calls = turn.tool_calls.map(({ name, arguments: args }) => ({
		function: { name: wireName(name), arguments: argumentsIn(args) },
	}))
	return {
		role: 'assistant',
		content,
		...(typeof thinking === 'string' && { thinking }),
		...(calls.length > 0 && { tool_calls: calls }),
	}
}

/** Only gpt-oss supports levels; for other models, thinking is on or off. */
function thinkOf(model: string, effort: string): boolean | string {
	if (effort === 'none') return false
	return /gpt-oss/i.test(model) ? effort : true
}

/** The server's error does not name the field. */
function named(reported: ServerError): ServerError {
	return reported.param === undefined && /\bthink/i.test(reported.message) ? { ...reported, param: 'think' } : reported
}

/** Converts a chunk to one of a chat completion, so that one reader handles tool calls and reasoning within text. */
function chunkOf(value: unknown): object {
	if (!isObject(value)) throw malformed('a chunk is not an object')
	if (typeof value.error === 'string') throw new StreamError({ message: value.error })
	const { content, thinking, tool_calls } = fieldsOf(value.message)
	const calls = listIn(tool_calls).map(fieldsOf)
	const delta = {
		content,
		...(typeof thinking === 'string' && thinking !== '' && { reasoning_content: thinking }),
		// Each call arrives complete, usually without an id.
		tool_calls: calls.map(({ id, function: made }) => ({ id, index: fieldsOf(made).index, function: made })),
	}
	if (value.done !== true) return { choices: [{ delta, finish_reason: null }] }
	const { prompt_eval_count: prompt_tokens, eval_count: completion_tokens, done_reason = 'stop' } = value
	return { choices: [{ delta, finish_reason: done_reason }], usage: { prompt_tokens, completion_tokens } }
}
