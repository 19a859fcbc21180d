/** Any server with OpenAI's chat completions API. */
import type OpenAI from 'openai'
import { fieldsOf } from '../../core/util/is-object.ts'
import { wireName } from '../wire-name.ts'
import type { ToolSpec } from '../../core/protocol.ts'
import type { ModelOrder } from '../order.ts'
import { providerOf } from './dialect.ts'
import { bearer } from './http.ts'
import { ChatReader } from './openai-answer.ts'
import { callId, pairCalls, parseable } from './past-calls.ts'
import { dataUrl, shownOf, textIn } from '../attachments/shown.ts'
import type { Shown, AcceptedMedia } from '../attachments/shown.ts'
import type { ModelRequest, Provider, Turn } from './provider.ts'
import { stateOf } from './provider-state.ts'
import { simpleParameters } from './tool-parameters.ts'
import { supportedForm } from './traits.ts'
import type { Traits } from './traits.ts'
import { listIn } from './values.ts'

export const openai: Provider = providerOf({
	kind: 'openai',
	optional: [
		'temperature',
		'top_p',
		'max_tokens',
		'reasoning_effort',
		'parallel_tool_calls',
		'stop',
		'seed',
		'frequency_penalty',
		'presence_penalty',
		'verbosity',
	],
	expected: 'a stream of events; is base_url right? Most end in /v1',
	requestOf: (order, request, traits) => ({
		path: '/chat/completions',
		headers: bearer(order),
		body: bodyOf(order, request, traits),
	}),
	readerFor: (answer, tools) => new ChatReader(answer, tools),
})

type Body = OpenAI.ChatCompletionCreateParams
type Message = OpenAI.ChatCompletionMessageParam
type Part = OpenAI.ChatCompletionContentPart

export function bodyOf(order: ModelOrder, request: ModelRequest, traits: Traits = {}): Body {
	const { max_tokens, parallel_tool_calls, ...params } = order.params ?? {}
	const { tools } = request
	const streams = traits.streaming !== false
	const body = {
		model: order.model,
		messages: messagesOf(order, request, traits),
		...(streams && { stream: true }),
		...(streams && traits.stream_options !== false && { stream_options: { include_usage: true } }),
		...(tools.length > 0 && { tools: toolsOf(tools, traits) }),
		...(tools.length > 0 && parallel_tool_calls !== undefined && { parallel_tool_calls }),
		...formOf(request, traits),
		...params,
		...(max_tokens !== undefined &&
			!traits.drop?.includes('max_tokens') && { [traits.max_tokens_field ?? maxTokensField(order)]: max_tokens }),
		...order.sampling,
		...order.extra_body,
	}
	for (const field of traits.drop ?? []) delete (body as Record<string, unknown>)[field]
	return body as Body
}

const made = {
	whole: new WeakMap<readonly ToolSpec[], object[]>(),
	simple: new WeakMap<readonly ToolSpec[], object[]>(),
}

/** Cached for each list, so that `send` can cache its JSON. */
export function toolsOf(tools: readonly ToolSpec[], { simple_schemas: areSimple }: Traits): object[] {
	const known = areSimple ? made.simple : made.whole
	let list = known.get(tools)
	if (!list) {
		list = tools.map(({ name, description, parameters }) => ({
			type: 'function',
			function: {
				name: wireName(name),
				description,
				parameters: areSimple ? simpleParameters(parameters) : parameters,
			},
		}))
		known.set(tools, list)
	}
	return list
}

function formOf({ form }: ModelRequest, traits: Traits): object {
	const { json, call: [name, ...others] = [] } = supportedForm(form, traits)
	return {
		...(json && {
			response_format: json.schema ? { type: 'json_schema', json_schema: json } : { type: 'json_object' },
		}),
		...(name !== undefined && {
			tool_choice: others.length > 0 ? 'required' : { type: 'function', function: { name } },
		}),
	}
}

const SOUNDS: Readonly<Record<string, 'wav' | 'mp3'>> = { 'audio/wav': 'wav', 'audio/mpeg': 'mp3' }
const ACCEPTED: AcceptedMedia = {
	images: new Set(['image/png', 'image/jpeg', 'image/gif', 'image/webp']),
	files: new Set(['application/pdf']),
	audio: new Set(Object.keys(SOUNDS)),
}

function messagesOf(order: ModelOrder, request: ModelRequest, traits: Traits): Message[] {
	const { system, turns } = request
	const messages: Message[] = []
	/** Attachments of results: a result can only be text, so they are sent in a message after the results. */
	let attachments: Part[] = []
	const flush = (): void => {
		if (attachments.length > 0) messages.push({ role: 'user', content: attachments })
		attachments = []
	}
	for (const turn of turns) {
		if (turn.role === 'tool') {
			const shown = shownOf(turn, request, traits, ACCEPTED)
			const parts = shown.filter((one) => one.kind !== 'text').map(partOf)
			if (parts.length > 0)
				attachments.push({ type: 'text', text: `[Attachments of the result of ${wireName(turn.name)}:]` })
			attachments.push(...parts)
			messages.push({ role: 'tool', tool_call_id: callId(turn.call_id, traits), content: textIn(shown) })
			continue
		}
		flush()
		messages.push(turn.role === 'user' ? userMessage(turn, request, traits) : messageOf(order, turn, traits))
	}
	flush()
	if (system !== null) messages.unshift({ role: traits.system_role ?? 'system', content: system })
	// A template without a system role also requires alternating roles.
	return traits.alternate || traits.system_role === 'user' ? alternating(messages) : messages
}

function userMessage(turn: Extract<Turn, { role: 'user' }>, request: ModelRequest, traits: Traits): Message {
	if (!turn.attachments) return { role: 'user', content: turn.content }
	const shown = shownOf(turn, request, traits, ACCEPTED)
	// Many servers accept text only as a string.
	if (shown.every((one) => one.kind === 'text')) return { role: 'user', content: textIn(shown) }
	return { role: 'user', content: shown.map(partOf) }
}

function partOf(shown: Shown): Part {
	switch (shown.kind) {
		case 'text':
			return { type: 'text', text: shown.text }
		case 'image':
			return { type: 'image_url', image_url: { url: dataUrl(shown) } }
		case 'file':
			return { type: 'file', file: { filename: shown.name, file_data: dataUrl(shown) } }
		case 'audio':
			return { type: 'input_audio', input_audio: { data: shown.base64, format: SOUNDS[shown.media_type] ?? 'wav' } }
	}
}

function messageOf(order: ModelOrder, turn: Extract<Turn, { role: 'assistant' }>, traits: Traits): Message {
	const { content, tool_calls } = turn
	const { calls, ...back } = stateOf(order, turn, traits)
	if (tool_calls.length === 0) return { role: 'assistant', content, ...back }
	const made = listIn(calls).map(fieldsOf)
	const pairs = pairCalls(made, tool_calls)
	const extraOf = (call: unknown): unknown => made[pairs?.findIndex((pair) => pair === call) ?? -1]?.extra_content
	return {
		role: 'assistant',
		content: content === '' && !traits.text_always ? null : content,
		...back,
		tool_calls: tool_calls.map((call) => {
			const extra_content = extraOf(call)
			return {
				id: callId(call.id, traits),
				type: 'function',
				function: { name: wireName(call.name), arguments: parseable(call.arguments) },
				...(extra_content !== undefined && { extra_content }),
			}
		}),
	}
}

/** Replaces a message that a template requires and the conversation does not have. */
const NOTHING = '…'

/**
 * For chat templates that accept only alternating messages of the user and the assistant, apart from calls and their results. Joins
 * consecutive messages of one role, and fills in missing messages.
 */
function alternating(messages: Message[]): Message[] {
	const result: Message[] = []
	for (const message of messages) {
		const last = result.at(-1)
		const isAnswer = last?.role === 'assistant' && last.tool_calls === undefined
		const continues = message.role === 'user' ? last?.role === 'user' : message.role === 'assistant' && isAnswer
		if (last && continues) {
			result[result.length - 1] = { ...message, content: joined(last, message) } as Message
			continue
		}
		if (message.role === 'user' && last?.role === 'tool') result.push({ role: 'assistant', content: NOTHING })
		if (message.role === 'assistant' && (!last || last.role === 'system' || last.role === 'developer'))
			result.push({ role: 'user', content: NOTHING })
		result.push(message)
	}
	return result
}

function joined(...messages: Message[]): string | object[] {
	const contents = messages.flatMap(({ content }) => (content ? [content] : []))
	if (contents.every((content) => typeof content === 'string')) return contents.join('\n\n')
	return contents.flatMap((content): object[] =>
		typeof content === 'string' ? [{ type: 'text', text: content }] : content,
	)
}

/** OpenAI's newer models refuse `max_tokens`; most other servers support only that name. */
function maxTokensField({ base_url }: ModelOrder): 'max_tokens' | 'max_completion_tokens' {
	const isOpenAI = base_url === undefined || new URL(base_url).hostname.endsWith('.openai.com')
	return isOpenAI ? 'max_completion_tokens' : 'max_tokens'
}
