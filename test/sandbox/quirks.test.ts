/** Deviations of model servers from their documented APIs: each is handled, and none completes a run with an empty answer. */
import t from 'tap'
import type { ModelAnswer, ToolSpec } from '../../core/protocol.ts'
import type { AnswerForm, ModelOrder } from '../../sandbox/order.ts'
import { openProvider } from '../../sandbox/models/open.ts'
import type { ModelFailure, ModelRequest, Turn } from '../../sandbox/models/provider.ts'
import { sealState } from '../../sandbox/models/provider-state.ts'
import { startScriptedModels } from '../support/scripted-model.ts'
import type { ScriptedReply, ScriptedRequest } from '../support/scripted-model.ts'

interface Quirk {
	/** Default: openai. */
	kind?: ModelOrder['kind']
	order?: Partial<ModelOrder>
	withoutTools?: true
	/** The parameters of the only tool. */
	parameters?: Record<string, unknown>
	/** After the prompt. */
	turns?: (order: ModelOrder) => Turn[]
	system?: string
	form?: AnswerForm
	reply: ScriptedReply | ((request: ScriptedRequest, n: number) => ScriptedReply)
	content?: string
	calls?: [name: string, args: object][]
	reasoning?: string
	finish_reason?: ModelAnswer['finish_reason']
	usage?: Partial<ModelAnswer['usage']>
	failure?: Partial<ModelFailure> & { code: string }
	/** The answer has neither text nor calls. */
	isBlank?: true
	/** Must match the body of the last request. */
	lastRequest?: object
	/** The number of requests. */
	requests?: number
}

const tools: ToolSpec[] = [
	{
		name: 'memory.stm_read',
		description: 'Reads.',
		parameters: { type: 'object', properties: { key: { type: 'string', minLength: 1 } } },
	},
]
const NAME = 'memory_stm_read'
const CALL: [string, object][] = [['memory.stm_read', { key: 'a' }]]

const delta = (piece: object, finish_reason: string | null = null): object => ({
	choices: [{ index: 0, delta: piece, finish_reason }],
})
const textReply = (...pieces: string[]): ScriptedReply => ({
	sse: [...pieces.map((content) => delta({ content })), delta({}, 'stop')],
})
const jsonReply = (message: object, finish_reason: string | null = 'stop'): ScriptedReply => ({
	json: { choices: [{ index: 0, message, finish_reason }] },
})
const refusal = (message: string, more: object = {}, status = 400): ScriptedReply => ({
	status,
	json: { error: { message, type: 'invalid_request_error', ...more } },
})
/** Refuses requests whose body the server does not accept. */
const refusesIf =
	(
		isUnsupported: (body: ScriptedRequest['body']) => unknown,
		refused: ScriptedReply,
		answer: ScriptedReply = textReply('Yes.'),
	) =>
	({ body }: ScriptedRequest): ScriptedReply =>
		isUnsupported(body) ? refused : answer
const call = (id: string, args: string, more: object = {}): object => ({
	index: 0,
	id,
	type: 'function',
	function: { name: NAME, arguments: args },
	...more,
})
/** A call and its result; `state`: the provider state of the call's answer. */
const toolTurns =
	(state?: (order: ModelOrder) => unknown) =>
	(order: ModelOrder): Turn[] => {
		const provider_state = state && sealState(order, state(order))
		return [
			{
				role: 'assistant',
				content: '',
				tool_calls: [{ id: 'c1', name: 'memory.stm_read', arguments: '{"key":"a"}' }],
				...(provider_state && { provider_state }),
			},
			{ role: 'tool', call_id: 'c1', name: 'memory.stm_read', ok: true, content: '1' },
		]
	}
/** As the templates of Mistral and Gemma require; calls and their results do not count. */
const ALTERNATE = 'Conversation roles must alternate user/assistant/user/assistant/...'
const alternates = (messages: { role: string; tool_calls?: unknown }[]): boolean =>
	messages
		.filter(({ role, tool_calls }) => role === 'user' || (role === 'assistant' && tool_calls === undefined))
		.every(({ role }, at) => role === (at % 2 === 0 ? 'user' : 'assistant'))
/** As older templates require, which support neither system messages nor tools. */
const alternatesStrictly = (messages: { role: string }[]): boolean =>
	messages.every(({ role }, at) => role === (at % 2 === 0 ? 'user' : 'assistant'))
const anthropicReply = (...content: object[]): ScriptedReply => ({
	json: { type: 'message', content, stop_reason: 'end_turn', usage: { input_tokens: 1, output_tokens: 1 } },
})
const geminiReply = (parts: object[], finishReason = 'STOP', more: object = {}): ScriptedReply => ({
	sse: [{ candidates: [{ content: { role: 'model', parts }, finishReason }], ...more }],
})
const responsesReply = (...items: object[]): ScriptedReply => ({
	sse: [
		...items.map((item) => ({ type: 'response.output_item.done', item })),
		{ type: 'response.completed', response: { status: 'completed', output: items } },
	],
})
const responseText = { type: 'message', id: 'm', role: 'assistant', content: [{ type: 'output_text', text: 'Yes.' }] }

const ODATA = {
	type: 'object',
	properties: { _top: {}, $top: {}, 'filter[id]': {}, plain: {}, ['x'.repeat(65)]: {} },
	required: ['filter[id]'],
}

const quirks: Record<string, Quirk> = {
	'<think> in the text': {
		reply: textReply('<th', 'ink>It ', 'is.</thi', 'nk>\n\nYes', '.'),
		content: 'Yes.',
		reasoning: 'It is.',
	},
	'<think> opened by the template': {
		reply: textReply('It is.\n</think>\n\nYes.'),
		content: 'Yes.',
		reasoning: 'It is.',
	},
	'an unclosed <think>': {
		reply: textReply('<think>It is, ', 'or is it'),
		isBlank: true,
		reasoning: 'It is, or is it',
	},
	'[THINK] of Mistral': { reply: textReply('[THINK]It is.[/THINK]Yes.'), content: 'Yes.', reasoning: 'It is.' },
	'an answer that mentions <think>': {
		reply: textReply('Write <think>…</think> first.'),
		content: 'Write <think>…</think> first.',
	},
	'reasoning_content without content': {
		reply: { sse: [delta({ reasoning_content: 'Hm.' }), delta({}, 'stop')] },
		isBlank: true,
		reasoning: 'Hm.',
	},
	'reasoning in the field `reasoning`': {
		reply: { sse: [delta({ reasoning: 'Hm.' }), delta({ content: 'Yes.' }, 'stop')] },
		content: 'Yes.',
		reasoning: 'Hm.',
	},
	'text as a list of parts': {
		reply: jsonReply({
			content: [
				{ type: 'thinking', thinking: [{ type: 'text', text: 'Hm.' }] },
				{ type: 'text', text: 'Yes.' },
			],
		}),
		content: 'Yes.',
		reasoning: 'Hm.',
	},
	'a call in the format of Hermes': {
		reply: textReply('I look.\n<tool_', `call>\n{"name": "${NAME}", "arguments": {"key": "a"}}\n</tool_call>`),
		content: 'I look.\n',
		calls: CALL,
		finish_reason: 'tool_calls',
	},
	'an unclosed call': { reply: textReply(`<tool_call>{"name": "${NAME}", "arguments": {"key": "a"}}`), calls: CALL },
	'a call in the format of Qwen3-Coder': {
		reply: textReply(`<tool_call>\n<function=${NAME}>\n<parameter=key>\na\n</parameter>\n</function>\n</tool_call>`),
		calls: CALL,
	},
	'a call in the format of GLM': {
		reply: textReply(`<tool_call>${NAME}\n<arg_key>key</arg_key>\n<arg_value>a</arg_value>\n</tool_call>`),
		calls: CALL,
	},
	'a list of calls in the format of Mistral': {
		reply: textReply(`[TOOL_CALLS][{"name": "${NAME}", "arguments": {"key": "a"}}]`),
		calls: CALL,
	},
	'a call with [ARGS]': { reply: textReply(`[TOOL_CALLS]${NAME}[ARGS]{"key": "a"}`), calls: CALL },
	'a call in the format of Llama': { reply: textReply(`<function=${NAME}>{"key": "a"}</function>`), calls: CALL },
	'a call after <|python_tag|>': {
		reply: textReply(`<|python_tag|>{"name": "${NAME}", "parameters": {"key": "a"}}`),
		calls: CALL,
	},
	'a call in the format of DeepSeek': {
		reply: textReply(
			`<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>${NAME}\n\`\`\`json\n{"key": "a"}\n\`\`\`<｜tool▁call▁end｜><｜tool▁calls▁end｜>`,
		),
		calls: CALL,
	},
	'a call in the format of Kimi': {
		reply: textReply(
			`<|tool_calls_section_begin|><|tool_call_begin|>functions.${NAME}:0<|tool_call_argument_begin|>{"key": "a"}<|tool_call_end|><|tool_calls_section_end|>`,
		),
		calls: CALL,
	},
	'a call in the format of Claude': {
		reply: textReply(
			`<function_calls><invoke name="${NAME}"><parameter name="key">a</parameter></invoke></function_calls>`,
		),
		calls: CALL,
	},
	'a call that is the whole text': { reply: textReply(`{"name": "${NAME}", "parameters": {"key": "a"}}`), calls: CALL },
	'a call in a fence': {
		reply: textReply('```json\n', `{"name": "${NAME}", "arguments": {"key": "a"}}`, '\n```'),
		calls: CALL,
	},
	'a quoted call': {
		reply: textReply(`Write:\n\`\`\`\n<tool_call>{"name": "${NAME}", "arguments": {}}</tool_call>\n\`\`\``),
		content: `Write:\n\`\`\`\n<tool_call>{"name": "${NAME}", "arguments": {}}</tool_call>\n\`\`\``,
		finish_reason: 'stop',
	},
	'a call of a tool that was not offered': {
		reply: textReply('<tool_call>{"name": "rm", "arguments": {}}</tool_call>'),
		content: '<tool_call>{"name": "rm", "arguments": {}}</tool_call>',
	},
	'an answer in JSON': { reply: textReply('{"city": ', '"Rome"}'), content: '{"city": "Rome"}' },
	'the deprecated function_call': {
		reply: {
			sse: [
				delta({ function_call: { name: NAME, arguments: '{"key"' } }),
				delta({ function_call: { arguments: ':"a"}' } }),
				delta({}, 'function_call'),
			],
		},
		calls: CALL,
		finish_reason: 'tool_calls',
	},
	'calls with finish_reason stop': {
		reply: { sse: [delta({ tool_calls: [call('c', '{"key":"a"}')] }), delta({}, 'stop')] },
		calls: CALL,
		finish_reason: 'tool_calls',
	},
	'two calls with the same index': {
		reply: {
			sse: [
				delta({ tool_calls: [call('c1', '{"key":"a"}')] }),
				delta({ tool_calls: [call('c2', '{"key":"b"}')] }),
				delta({}, 'tool_calls'),
			],
		},
		calls: [...CALL, ['memory.stm_read', { key: 'b' }]],
	},
	'a call without arguments': {
		reply: { sse: [delta({ tool_calls: [call('c', '')] }), delta({}, 'tool_calls')] },
		calls: [['memory.stm_read', {}]],
	},
	'finish_reason tool_calls without calls': {
		reply: { sse: [delta({ content: 'Yes.' }, 'tool_calls')] },
		content: 'Yes.',
		finish_reason: 'stop',
	},
	'a nonstandard finish_reason': {
		reply: { sse: [delta({ content: 'Yes' }, 'max_tokens')] },
		content: 'Yes',
		finish_reason: 'length',
	},
	'an answer removed by a content filter': {
		reply: { sse: [delta({}, 'content_filter')] },
		isBlank: true,
		finish_reason: 'content_filter',
	},
	'an empty answer': {
		reply: { sse: [delta({ role: 'assistant' }), delta({}, 'stop')] },
		isBlank: true,
		finish_reason: 'stop',
	},
	'a JSON body instead of a stream': { reply: jsonReply({ content: 'Yes.' }), content: 'Yes.' },
	'a JSON body without finish_reason': { reply: jsonReply({ content: 'Yes.' }, null), content: 'Yes.' },
	'a stream with another content type': {
		reply: { text: `data: ${JSON.stringify(delta({ content: 'Yes.' }, 'stop'))}\n\n`, type: 'text/plain' },
		content: 'Yes.',
	},
	'a last event without a blank line after it': {
		reply: { text: `data: ${JSON.stringify(delta({ content: 'Yes.' }, 'stop'))}`, type: 'text/event-stream' },
		content: 'Yes.',
	},
	'an error with status 200': {
		reply: { json: { error: { message: 'slow down', code: 'rate_limit_exceeded' } } },
		failure: { code: 'model_rate_limited', retryable: true },
	},
	'an error in the stream': {
		reply: { sse: [delta({ content: 'a' }), { error: { message: 'overloaded', type: 'overloaded_error' } }] },
		failure: { code: 'model_unavailable', retryable: true },
	},
	'a base_url that serves a web page': {
		reply: { text: '<html>', type: 'text/html' },
		failure: { code: 'model_malformed', message: /base_url/ as never },
	},
	'usage with cached and reasoning tokens': {
		reply: {
			sse: [
				delta({ content: 'Yes.' }, 'stop'),
				{
					choices: [],
					usage: {
						prompt_tokens: 9,
						completion_tokens: 8,
						prompt_tokens_details: { cached_tokens: 7 },
						completion_tokens_details: { reasoning_tokens: 6 },
					},
				},
			],
		},
		content: 'Yes.',
		usage: { input_tokens: 9, output_tokens: 8, cached_tokens: 7, reasoning_tokens: 6 },
	},
	'max_tokens refused in favour of max_completion_tokens': {
		order: { params: { max_tokens: 9 } },
		reply: refusesIf(
			(body) => 'max_tokens' in body,
			refusal("Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.", { param: 'max_tokens' }),
		),
		content: 'Yes.',
		lastRequest: { max_completion_tokens: 9 },
		requests: 2,
	},
	'max_tokens above the limit of the model': {
		order: { params: { max_tokens: 999 } },
		reply: refusesIf((body) => 'max_tokens' in body, refusal('max_tokens is too large: 999. At most 100.')),
		content: 'Yes.',
		requests: 2,
	},
	'temperature refused, then top_p': {
		order: { params: { temperature: 0.1, top_p: 0.5, seed: 7 } },
		reply: ({ body }) => {
			if ('temperature' in body)
				return refusal("'temperature' does not support 0.1 with this model", { param: 'temperature' })
			return 'top_p' in body ? refusal('`top_p`: Extra inputs are not permitted', {}, 422) : textReply('Yes.')
		},
		content: 'Yes.',
		lastRequest: { seed: 7 },
		requests: 3,
	},
	'a field of extra_body refused': {
		order: { extra_body: { enable_thinking: false, keep: 1 } },
		reply: refusesIf(
			(body) => 'enable_thinking' in body,
			refusal('Unrecognized request argument supplied: enable_thinking'),
		),
		content: 'Yes.',
		lastRequest: { keep: 1 },
		requests: 2,
	},
	'stream_options refused': {
		reply: refusesIf((body) => 'stream_options' in body, refusal('stream_options: extra fields not permitted')),
		content: 'Yes.',
		lastRequest: { stream: true },
		requests: 2,
	},
	'streaming refused': {
		reply: refusesIf(
			(body) => body.stream,
			refusal('Streaming is not supported for this model'),
			jsonReply({ content: 'Yes.' }),
		),
		content: 'Yes.',
		requests: 2,
	},
	'tools refused': {
		reply: refusesIf(
			(body) => body.tools,
			refusal('registry.ollama.ai/library/m does not support tools'),
			textReply(`<tool_call>{"name": "${NAME}", "arguments": {"key": "a"}}</tool_call>`),
		),
		calls: CALL,
		lastRequest: { messages: [{ role: 'system', content: /memory_stm_read/ }, {}] },
		requests: 2,
	},
	'tools refused with 404': {
		reply: refusesIf((body) => body.tools, refusal('No endpoints found that support tool use.', {}, 404)),
		turns: toolTurns(),
		content: 'Yes.',
		lastRequest: {
			messages: [{}, {}, { role: 'assistant', content: /<tool_call>/ }, { role: 'user', content: /<tool_response/ }],
		},
		requests: 2,
	},
	'a tool schema that the server cannot parse': {
		reply: refusesIf(
			(body) => JSON.stringify(body).includes('minLength'),
			refusal('Unable to parse the JSON schema of tools[0]', { param: 'tools[0].function.parameters' }),
		),
		content: 'Yes.',
		lastRequest: { tools: [{ function: { name: NAME } }] },
		requests: 2,
	},
	'top-level alternatives and arrays without items refused in a tool schema': {
		parameters: {
			type: 'object',
			properties: { rows: { type: ['array', 'null'] }, pair: { type: 'array', items: [{ type: 'string' }] } },
			required: ['rows'],
			anyOf: [{ properties: { key: { type: 'string' } } }, { required: ['pair'] }],
			oneOf: [{ properties: { id: { type: 'number' } } }],
		},
		reply: refusesIf(
			({ tools: [{ function: tool }] }) => {
				const { anyOf, oneOf, properties } = tool.parameters
				return (
					anyOf ||
					oneOf ||
					Array.isArray(properties.rows.type) ||
					!properties.rows.items ||
					properties.pair.items.length
				)
			},
			refusal(`Invalid schema for function '${NAME}': schema must not have 'oneOf'/'anyOf' at the top level.`, {
				param: 'tools[0].function.parameters',
			}),
		),
		content: 'Yes.',
		lastRequest: {
			tools: [
				{
					function: {
						parameters: {
							type: 'object',
							properties: {
								rows: { type: 'array', items: {} },
								pair: { type: 'array', items: {} },
								key: { type: 'string' },
								id: { type: 'number' },
							},
							required: ['rows'],
						},
					},
				},
			],
		},
		requests: 2,
	},
	'llama.cpp: an unknown type in a tool schema': {
		parameters: { type: 'object', properties: { key: { type: 'int' }, file: true, list: { type: ['any', 'null'] } } },
		reply: refusesIf(({ tools: [tool] }) => {
			const { key, file, list } = tool.function.parameters.properties
			return [key, file, list].some((one) => typeof one !== 'object' || /int|any/.test(one.type))
		}, refusal('Unable to generate parser for this template. Automatic parser generation failed: JSON schema error at #/properties/key: unrecognized type int')),
		content: 'Yes.',
		lastRequest: { tools: [{ function: { name: NAME } }] },
		requests: 2,
	},
	'llama.cpp: an unsupported answer schema': {
		form: { json: { name: 'a', schema: { type: 'object', properties: { a: true } } } },
		reply: refusesIf(
			({ response_format }) => response_format,
			refusal(
				'Unable to generate parser for this template. Automatic parser generation failed: JSON schema error at #/properties/a: schema must be an object',
			),
			textReply('{}'),
		),
		content: '{}',
		lastRequest: { tools: [{ function: { name: NAME, parameters: { properties: { key: { minLength: 1 } } } } }] },
		requests: 2,
	},
	'a tool that stays refused, named only in `param`': {
		reply: refusesIf(
			(body) => body.tools,
			refusal(`Invalid schema for function '${NAME}': it is refused.`, { param: 'tools[0].function.parameters' }),
			textReply(`<tool_call>{"name": "${NAME}", "arguments": {"key": "a"}}</tool_call>`),
		),
		calls: CALL,
		lastRequest: { messages: [{ role: 'system', content: /memory_stm_read/ }, {}] },
		requests: 3,
	},
	'a tool that stays refused, named only in the message': {
		reply: refusesIf((body) => body.tools, refusal(`Invalid schema for function '${NAME}': it is refused.`)),
		content: 'Yes.',
		requests: 3,
	},
	'a tool description that is too long, not the conversation': {
		reply: refusesIf(
			(body) => body.tools,
			refusal("Invalid 'tools[0].function.description': string too long. Expected at most 1024.", {
				param: 'tools[0].function.description',
				code: 'string_above_max_length',
			}),
		),
		content: 'Yes.',
		requests: 3,
	},
	'half of a surrogate pair, as at the end of truncated text': {
		turns: () => [
			...toolTurns()({} as ModelOrder),
			{ role: 'user', content: 'cut \ud83d, \\ud83d, \\\\\ude00\ud83d and whole \u{1f600}' },
		],
		reply: refusesIf(
			({ messages }) => messages.some(({ content }: { content: string | null }) => !(content ?? '').isWellFormed()),
			refusal('parse error: invalid string: surrogate U+D800..U+DBFF must be followed by U+DC00..U+DFFF'),
		),
		content: 'Yes.',
		lastRequest: { messages: [{}, {}, {}, { content: 'cut \ufffd, \\ud83d, \\\\\ufffd\ufffd and whole \u{1f600}' }] },
		requests: 1,
	},
	'Responses: llama.cpp requires the type of messages, and parses the arguments of calls': {
		kind: 'openai-responses',
		turns: () => [
			{
				role: 'assistant',
				content: 'Let me see.',
				tool_calls: [{ id: 'c1', name: 'memory.stm_read', arguments: '{"key": "a' }],
			},
			{ role: 'tool', call_id: 'c1', name: 'memory.stm_read', ok: false, content: 'not JSON' },
		],
		reply: ({ body }) => {
			if (body.input.some((item: { type?: string; role?: string }) => item.role === 'assistant' && !item.type))
				return refusal("Cannot determine type of 'item'")
			const calls = body.input.filter(({ type }: { type: string }) => type === 'function_call')
			if (calls.some((call: { arguments: string }) => !call.arguments.endsWith('}')))
				return refusal('Failed to parse tool call arguments as JSON', {}, 500)
			return responsesReply(responseText)
		},
		content: 'Yes.',
		lastRequest: { input: [{ role: 'user' }, { type: 'message', role: 'assistant', content: 'Let me see.' }, {}, {}] },
		requests: 1,
	},
	'call ids of another format than those of Mistral': {
		turns: toolTurns(),
		reply: refusesIf(
			(body) =>
				!/^[a-zA-Z0-9]{9}$/.test(
					body.messages[1].tool_calls[0].id +
						(body.messages[2].tool_call_id === body.messages[1].tool_calls[0].id ? '' : '!'),
				),
			refusal('Tool call id was c1 but must be a-z, A-Z, 0-9, with a length of 9.', { code: '3280' }),
		),
		content: 'Yes.',
		lastRequest: { tools: [{ function: { name: NAME } }] },
		requests: 2,
	},
	'the same, refused by its template': {
		turns: toolTurns(),
		reply: refusesIf(
			(body) => body.messages[1].tool_calls[0].id === 'c1',
			refusal('Tool call IDs should be alphanumeric strings with length 9!', {}, 500),
		),
		content: 'Yes.',
		lastRequest: { tools: [{ function: { name: NAME } }] },
		requests: 2,
	},
	'a call id that is too long, not the conversation': {
		turns: toolTurns(),
		reply: refusesIf(
			(body) => body.messages[1].tool_calls[0].id === 'c1',
			refusal("Invalid 'messages[1].tool_calls[0].id': string too long. Expected a string with maximum length 40.", {
				param: 'messages[1].tool_calls[0].id',
				code: 'string_above_max_length',
			}),
		),
		content: 'Yes.',
		requests: 2,
	},
	'Responses: a call id that is too long, not the conversation': {
		kind: 'openai-responses',
		turns: toolTurns(),
		reply: refusesIf(
			(body) => body.input[1].call_id === 'c1' || body.input[2].call_id !== body.input[1].call_id,
			refusal("Invalid 'input[1].call_id': string too long. Expected a string with maximum length 64.", {
				param: 'input[1].call_id',
				code: 'string_above_max_length',
			}),
			responsesReply(responseText),
		),
		content: 'Yes.',
		requests: 2,
	},
	'the system role refused': {
		system: 'Be brief.',
		reply: refusesIf((body) => body.messages[0].role === 'system', refusal('System role not supported')),
		content: 'Yes.',
		lastRequest: { messages: [{ role: 'user', content: 'Be brief.\n\nIs it?' }] },
		requests: 2,
	},
	'roles that must alternate': {
		system: 'Be brief.',
		turns: (order) => [
			{ role: 'user', content: 'Well?' },
			...toolTurns()(order),
			{ role: 'assistant', content: 'Yes.', tool_calls: [] },
			{ role: 'user', content: 'Why?' },
			{ role: 'user', content: 'Say!' },
		],
		reply: refusesIf((body) => !alternates(body.messages), refusal(ALTERNATE)),
		content: 'Yes.',
		lastRequest: {
			messages: [{}, { content: 'Is it?\n\nWell?' }, {}, { role: 'tool' }, {}, { content: 'Why?\n\nSay!' }],
		},
		requests: 2,
	},
	'roles that must alternate, with a missing answer': {
		turns: (order) => [
			...toolTurns()(order),
			{ role: 'user', content: 'Well?' },
			{ role: 'assistant', content: 'Yes', tool_calls: [] },
			{ role: 'assistant', content: 'and no.', tool_calls: [] },
			{ role: 'user', content: 'Why?' },
		],
		reply: refusesIf((body) => !alternates(body.messages), refusal(ALTERNATE)),
		content: 'Yes.',
		lastRequest: {
			messages: [
				{ content: 'Is it?' },
				{},
				{ role: 'tool' },
				{ role: 'assistant', content: '…' },
				{ content: 'Well?' },
				{ content: 'Yes\n\nand no.' },
				{ content: 'Why?' },
			],
		},
		requests: 2,
	},
	'roles that must alternate, after a system message': {
		system: 'Be brief.',
		turns: () => [{ role: 'user', content: 'Well?' }],
		reply: refusesIf(
			(body) => !alternates(body.messages),
			refusal(`Jinja Exception: After the optional system message, c${ALTERNATE.slice(1)}`),
		),
		content: 'Yes.',
		lastRequest: { messages: [{ role: 'system', content: 'Be brief.' }, { content: 'Is it?\n\nWell?' }] },
		requests: 2,
	},
	'roles that must alternate, without a system role': {
		system: 'Be brief.',
		turns: () => [{ role: 'user', content: 'Well?' }],
		reply: refusesIf((body) => !alternatesStrictly(body.messages), refusal(ALTERNATE)),
		content: 'Yes.',
		lastRequest: { messages: [{ role: 'user', content: 'Be brief.\n\nIs it?\n\nWell?' }], tools: [{}] },
		requests: 3,
	},
	'roles that must alternate, without a tool role': {
		system: 'Be brief.',
		turns: toolTurns(),
		reply: refusesIf(
			(body) => !alternatesStrictly(body.messages),
			refusal(ALTERNATE),
			textReply('<tool_call>{"name": "memory_stm_read", "arguments": {"key": "a"}}</tool_call>'),
		),
		calls: CALL,
		lastRequest: {
			messages: [
				{ content: /Be brief[^]*memory_stm_read/ },
				{ role: 'assistant' },
				{ role: 'user', content: /tool_response/ },
			],
		},
		requests: 4,
	},
	'a system message that must come first': {
		system: 'Be brief.',
		turns: (order) => [{ role: 'user', content: 'Well?' }, ...toolTurns()(order)],
		reply: refusesIf(
			({ messages }) => messages.some(({ role }: { role: string }, at: number) => at > 0 && role === 'system'),
			refusal('System message must be at the beginning.'),
		),
		content: 'Yes.',
		lastRequest: { messages: [{ role: 'system', content: 'Be brief.' }, { role: 'user' }, {}, {}] },
		requests: 1,
	},
	'content that must not be null': {
		turns: toolTurns(),
		reply: refusesIf(
			(body) => body.messages[1].content === null,
			refusal('messages.1.content: Input should be a valid string'),
		),
		content: 'Yes.',
		lastRequest: { messages: [{}, { content: '', tool_calls: [{ id: 'c1' }] }, {}] },
		requests: 2,
	},
	'reasoning_content that must be sent back': {
		turns: toolTurns(() => ({ reasoning_content: 'Hm.' })),
		reply: refusesIf(
			(body) => body.messages[1].reasoning_content !== 'Hm.',
			refusal('The reasoning_content in the thinking mode must be passed back'),
		),
		content: 'Yes.',
		requests: 1,
	},
	'reasoning_content that must not be sent back': {
		turns: toolTurns(() => ({ reasoning_content: 'Hm.' })),
		reply: refusesIf(
			(body) => 'reasoning_content' in body.messages[1],
			refusal("property 'reasoning_content' is unsupported"),
		),
		content: 'Yes.',
		requests: 2,
	},
	'a signature as extra content of a call': {
		turns: toolTurns(() => ({
			calls: [{ id: 'c1', name: NAME, extra_content: { google: { thought_signature: 's' } } }],
		})),
		reply: refusesIf(
			(body) => body.messages[1].tool_calls[0].extra_content?.google.thought_signature !== 's',
			refusal('Function call is missing a thought_signature'),
		),
		content: 'Yes.',
		requests: 1,
	},
	'a conversation that is too long': {
		reply: refusal("This model's maximum context length is 8192 tokens.", { code: 'context_length_exceeded' }),
		failure: { code: 'context_too_long', retryable: false, stated: { window: 8192 } },
		requests: 1,
	},
	'llama.cpp: a conversation that is too long': {
		reply: refusal('request (9000 tokens) exceeds the available context size (8192 tokens), try increasing it', {
			type: 'exceed_context_size_error',
			n_prompt_tokens: 9000,
			n_ctx: 8192,
		}),
		failure: { code: 'context_too_long', stated: { window: 8192, request: 9000 } },
	},
	'llama.cpp: a conversation that is too long, with the numbers in separate fields': {
		reply: refusal('the request exceeds the available context size', {
			type: 'exceed_context_size_error',
			n_prompt_tokens: 9000,
			n_ctx: 8192,
		}),
		failure: {
			code: 'context_too_long',
			message: '400 the request exceeds the available context size; request (9000 tokens), context size (8192 tokens)',
			stated: { window: 8192, request: 9000 },
		},
	},
	'an error in a separate event': {
		reply: {
			text: 'event: error\ndata: {"message":"slow down","code":"rate_limit_exceeded"}\n\ndata: [DONE]\n\n',
			type: 'text/event-stream',
		},
		failure: { code: 'model_rate_limited', message: 'slow down', retryable: true },
	},
	'an error in a separate event, as plain text': {
		reply: { text: 'event: error\ndata: upstream is gone\n\n', type: 'text/event-stream' },
		failure: { code: 'model_unavailable', message: 'upstream is gone', retryable: true },
	},
	'a proxy that omits the blank lines between events': {
		reply: {
			text: [delta({ content: 'Ye' }), delta({ content: 's.' }), delta({}, 'stop')]
				.map((event) => `data: ${JSON.stringify(event)}\n`)
				.concat('data: [DONE]\n')
				.join(''),
			type: 'text/event-stream',
		},
		content: 'Yes.',
	},
	'an event in several lines': {
		reply: {
			text: `${JSON.stringify(delta({ content: 'Yes.' }, 'stop'), null, 1).replace(/^/gm, 'data: ')}\n\n`,
			type: 'text/event-stream',
		},
		content: 'Yes.',
	},
	'vLLM: an error instead of an answer': {
		reply: {
			sse: [{ object: 'error', message: 'The image is broken.', type: 'BadRequestError', param: null, code: 400 }],
		},
		failure: { code: 'model_rejected', message: 'The image is broken.', status: 400 },
		requests: 1,
	},
	'vLLM: a refusal': {
		reply: {
			status: 400,
			json: { object: 'error', message: 'The image is broken.', type: 'BadRequestError', code: 400 },
		},
		failure: { code: 'model_rejected', message: '400 The image is broken.' },
	},
	'a request that is too large for the proxy': {
		reply: { status: 413, text: '<html>413</html>', type: 'text/html' },
		failure: { code: 'context_too_long' },
	},
	'a refusal without a reason': { reply: refusal('bad request'), failure: { code: 'model_rejected' }, requests: 1 },
	'Azure: a key in a header, a version in the query': {
		order: { api_key: 'k', headers: { 'api-key': 'azure-key' }, query: { 'api-version': '2026-01-01' } },
		reply: ({ headers, query }) =>
			headers['api-key'] === 'azure-key' && query.get('api-version') === '2026-01-01'
				? textReply('Yes.')
				: refusal('no'),
		content: 'Yes.',
	},
	'Anthropic: a signature is kept': {
		kind: 'anthropic',
		order: { params: { reasoning_effort: 'low' } },
		turns: toolTurns(() => ({
			content: [
				{ type: 'thinking', thinking: 'Hm.', signature: 's' },
				{ type: 'tool_use', id: 'c1', name: NAME, input: { key: 'a' } },
			],
		})),
		reply: refusesIf(
			(body) => body.messages[1].content[0].signature !== 's',
			refusal('no'),
			anthropicReply({ type: 'text', text: 'Yes.' }),
		),
		content: 'Yes.',
		lastRequest: { thinking: { type: 'enabled' } },
		requests: 1,
	},
	'Anthropic: roles that must alternate': {
		kind: 'anthropic',
		turns: (order) => [
			{ role: 'user', content: 'Well?' },
			...toolTurns()(order),
			{ role: 'user', content: 'Why?' },
			{ role: 'assistant', content: '', tool_calls: [] },
			{ role: 'user', content: 'Say!' },
		],
		reply: refusesIf(
			({ messages }) =>
				messages.some(({ role }: { role: string }, at: number) => role !== (at % 2 === 0 ? 'user' : 'assistant')),
			refusal('messages: roles must alternate between "user" and "assistant"'),
			anthropicReply({ type: 'text', text: 'Yes.' }),
		),
		content: 'Yes.',
		lastRequest: { messages: [{ content: [{}, {}] }, {}, { content: [{ type: 'tool_result' }, {}, {}] }] },
		requests: 1,
	},
	'Anthropic: a result whose call is not in the provider state': {
		kind: 'anthropic',
		turns: toolTurns(() => ({
			content: [
				{ type: 'thinking', thinking: 'Hm.', signature: 's' },
				{ type: 'tool_use', id: 'another', name: NAME, input: { key: 'a' } },
			],
		})),
		reply: refusesIf(
			({ messages }) => !messages[1]?.content.some(({ id }: { id?: string }) => id === 'c1'),
			refusal('messages.1.content.0: unexpected `tool_use_id` found in `tool_result` blocks: c1'),
			anthropicReply({ type: 'text', text: 'Yes.' }),
		),
		content: 'Yes.',
		requests: 1,
	},
	'Anthropic: earlier calls without tools': {
		kind: 'anthropic',
		withoutTools: true,
		turns: toolTurns(),
		reply: refusesIf(
			(body) => JSON.stringify(body.messages).includes('"tool_use"'),
			refusal('Requests which include `tool_use` or `tool_result` blocks must define tools'),
			anthropicReply({ type: 'text', text: 'Yes.' }),
		),
		content: 'Yes.',
		lastRequest: { messages: [{}, { role: 'assistant' }, { role: 'user' }] },
		requests: 1,
	},
	'Anthropic: no thinking if the last answer has no signature': {
		kind: 'anthropic',
		order: { params: { reasoning_effort: 'low' } },
		turns: toolTurns(),
		reply: refusesIf(
			(body) => body.thinking,
			refusal('Expected `thinking`, found `tool_use`'),
			anthropicReply({ type: 'text', text: 'Yes.' }),
		),
		content: 'Yes.',
		requests: 1,
	},
	'Anthropic: thinking without a budget': {
		kind: 'anthropic',
		order: { params: { reasoning_effort: 'low' } },
		reply: refusesIf(
			(body) => body.thinking.type === 'enabled',
			refusal('thinking.type.enabled is not supported; use adaptive thinking'),
			anthropicReply({ type: 'thinking', thinking: 'Hm.', signature: 's' }, { type: 'text', text: 'Yes.' }),
		),
		content: 'Yes.',
		reasoning: 'Hm.',
		lastRequest: { thinking: { type: 'adaptive' }, output_config: { effort: 'low' } },
		requests: 2,
	},
	'Anthropic: cached tokens count as input': {
		kind: 'anthropic',
		reply: {
			json: {
				content: [{ type: 'text', text: 'Yes.' }],
				stop_reason: 'end_turn',
				usage: { input_tokens: 1, cache_read_input_tokens: 20, cache_creation_input_tokens: 300, output_tokens: 4 },
			},
		},
		content: 'Yes.',
		usage: { input_tokens: 321, output_tokens: 4, cached_tokens: 20 },
	},
	'Anthropic: a prompt that is too long': {
		kind: 'anthropic',
		reply: refusal('prompt is too long: 210000 tokens > 200000 maximum'),
		failure: { code: 'context_too_long', stated: { window: 200_000, request: 210_000 } },
	},
	'Anthropic: overloaded in the stream': {
		kind: 'anthropic',
		reply: {
			sse: [
				{ type: 'message_start', message: {} },
				{ type: 'error', error: { type: 'overloaded_error', message: 'later' } },
			],
		},
		failure: { code: 'model_unavailable', retryable: true },
	},
	'Anthropic: ids and blank text of another provider': {
		kind: 'anthropic',
		turns: () => [
			{
				role: 'assistant',
				content: ' ',
				tool_calls: [{ id: 'functions.x:0', name: 'memory.stm_read', arguments: '{' }],
			},
			{ role: 'tool', call_id: 'functions.x:0', name: 'memory.stm_read', ok: false, content: '' },
		],
		reply: anthropicReply({ type: 'text', text: 'Yes.' }),
		content: 'Yes.',
		lastRequest: {
			messages: [
				{},
				{ content: [{ type: 'tool_use', id: 'functions_x_0', input: {} }] },
				{ content: [{ type: 'tool_result', tool_use_id: 'functions_x_0', is_error: true }] },
			],
		},
	},
	'Responses: encrypted reasoning is sent back': {
		kind: 'openai-responses',
		turns: toolTurns(() => ({
			output: [
				{ type: 'reasoning', id: 'rs', summary: [], encrypted_content: 'e' },
				{ type: 'function_call', id: 'fc', call_id: 'c1', name: NAME, arguments: '{"key":"a"}' },
			],
		})),
		reply: refusesIf(
			(body) => body.input[1].encrypted_content !== 'e' || body.input[2].id,
			refusal('no'),
			responsesReply(responseText),
		),
		content: 'Yes.',
		lastRequest: { store: false, include: ['reasoning.encrypted_content'] },
		requests: 1,
	},
	'Responses: reasoning is sent back with the call that followed it': {
		kind: 'openai-responses',
		turns: toolTurns(() => ({
			output: [
				{ type: 'reasoning', id: 'rs1', summary: [], encrypted_content: 'e' },
				// A call of a client's tool, which is not in the turns.
				{ type: 'function_call', id: 'fc1', call_id: 'c0', name: 'get_weather', arguments: '{}' },
				{ type: 'reasoning', id: 'rs2', summary: [], encrypted_content: 'e' },
				{ type: 'function_call', id: 'fc2', call_id: 'c1', name: NAME, arguments: '{"key":"a"}' },
			],
		})),
		reply: refusesIf(
			({ input }) =>
				input.some(
					({ type }: { type?: string }, at: number) =>
						type === 'reasoning' && !['message', 'function_call'].includes(input[at + 1]?.type),
				),
			refusal("Item 'rs1' of type 'reasoning' was provided without its required following item."),
			responsesReply(responseText),
		),
		content: 'Yes.',
		lastRequest: { input: [{}, { id: 'rs2' }, { call_id: 'c1' }, { type: 'function_call_output', call_id: 'c1' }] },
		requests: 1,
	},
	'Responses: a result whose call is not in the provider state': {
		kind: 'openai-responses',
		turns: toolTurns(() => ({
			output: [
				{ type: 'reasoning', id: 'rs', summary: [], encrypted_content: 'e' },
				{ type: 'function_call', id: 'fc', call_id: 'another', name: NAME, arguments: '{"key":"a"}' },
			],
		})),
		reply: refusesIf(
			({ input }) =>
				!input.some(({ type, call_id }: Record<string, unknown>) => type === 'function_call' && call_id === 'c1'),
			refusal('No tool call found for function call output with call_id c1.'),
			responsesReply(responseText),
		),
		content: 'Yes.',
		requests: 1,
	},
	'Responses: encrypted content refused, then summaries': {
		kind: 'openai-responses',
		reply: ({ body }) => {
			if (body.include) return refusal('Encrypted content is not supported with this model.')
			if (body.reasoning) return refusal('Your organization must be verified', { param: 'reasoning.summary' })
			return responsesReply(responseText)
		},
		content: 'Yes.',
		requests: 3,
	},
	'Responses: a truncated answer': {
		kind: 'openai-responses',
		reply: {
			sse: [
				{ type: 'response.output_text.delta', item_id: 'm', delta: 'Ye' },
				{
					type: 'response.incomplete',
					response: { status: 'incomplete', incomplete_details: { reason: 'max_output_tokens' }, output: [] },
				},
			],
		},
		content: 'Ye',
		finish_reason: 'length',
	},
	'Responses: a failure in the stream': {
		kind: 'openai-responses',
		reply: {
			sse: [{ type: 'response.failed', response: { error: { code: 'rate_limit_exceeded', message: 'later' } } }],
		},
		failure: { code: 'model_rate_limited', retryable: true },
	},
	'Gemini: signatures stay in their parts': {
		kind: 'google',
		order: { model: 'gemini-3-pro' },
		turns: toolTurns(() => ({
			parts: [
				{ functionCall: { name: NAME, args: { key: 'a' } }, thoughtSignature: 's' },
				{ text: '', thoughtSignature: 't' },
			],
		})),
		reply: refusesIf(
			(body) =>
				body.contents[1].parts[0].thoughtSignature !== 's' || body.contents[1].parts[1].thoughtSignature !== 't',
			refusal('missing a thought_signature'),
			geminiReply([{ text: 'Hm.', thought: true }, { text: 'Yes.' }]),
		),
		content: 'Yes.',
		reasoning: 'Hm.',
		requests: 1,
	},
	'Gemini: turns that must alternate': {
		kind: 'google',
		turns: (order) => [{ role: 'user', content: 'Well?' }, ...toolTurns()(order)],
		reply: refusesIf(
			(body) =>
				body.contents.some(({ role }: { role: string }, at: number) => role !== (at % 2 === 0 ? 'user' : 'model')),
			refusal('Please ensure that multiturn requests alternate between user and model.'),
			geminiReply([{ text: 'Yes.' }]),
		),
		content: 'Yes.',
		lastRequest: { contents: [{ parts: [{ text: 'Is it?' }, { text: 'Well?' }] }, {}, { role: 'user' }] },
		requests: 1,
	},
	'Gemini: a call of another model has no signature': {
		kind: 'google',
		order: { model: 'gemini-3-pro' },
		turns: toolTurns(),
		reply: refusesIf(
			(body) => !body.contents[1].parts[0].thoughtSignature,
			refusal('missing a thought_signature'),
			geminiReply([{ text: 'Yes.' }]),
		),
		content: 'Yes.',
		requests: 1,
	},
	'Anthropic: parameter names refused': {
		kind: 'anthropic',
		parameters: ODATA,
		reply: refusesIf(
			(body) => Object.keys(body.tools[0].input_schema.properties).some((name) => !/^[a-zA-Z0-9_.-]{1,64}$/.test(name)),
			refusal("tools.0.custom.input_schema.properties: Property keys should match pattern '^[a-zA-Z0-9_.-]{1,64}$'"),
			anthropicReply({
				type: 'tool_use',
				id: 'c',
				name: NAME,
				input: { _top: 1, _top_2: 2, filter_id_: 3, plain: { $a: 4 } },
			}),
		),
		calls: [['memory.stm_read', { _top: 1, $top: 2, 'filter[id]': 3, plain: { $a: 4 } }]],
		lastRequest: { tools: [{ input_schema: { required: ['filter_id_'] } }] },
		requests: 1,
	},
	'Anthropic: parameter names refused, in top-level alternatives': {
		kind: 'anthropic',
		parameters: {
			type: 'object',
			properties: { _top: {} },
			anyOf: [{ properties: { $top: {} } }, { required: ['_top'] }],
		},
		reply: refusesIf(
			(body) => body.tools[0].input_schema.anyOf,
			refusal('tools.0.custom.input_schema: input_schema does not support oneOf, allOf, or anyOf at the top level'),
			anthropicReply({ type: 'tool_use', id: 'c', name: NAME, input: { _top: 1, _top_2: 2 } }),
		),
		calls: [['memory.stm_read', { _top: 1, $top: 2 }]],
		lastRequest: { tools: [{ input_schema: { properties: { _top: {}, _top_2: {} } } }] },
		requests: 2,
	},
	'Anthropic behind a proxy: parameter names refused': {
		parameters: ODATA,
		reply: refusesIf(
			(body) => '$top' in body.tools[0].function.parameters.properties,
			refusal("tools.0.custom.input_schema.properties: Property keys should match pattern '^[a-zA-Z0-9_.-]{1,64}$'"),
			{ sse: [delta({ tool_calls: [call('c', '{"_top_2":2}')] }, 'tool_calls')] },
		),
		calls: [['memory.stm_read', { $top: 2 }]],
		requests: 2,
	},
	'Gemini: thinking refused': {
		kind: 'google',
		order: { model: 'gemini-2.5-flash' },
		reply: refusesIf(
			(body) => body.generationConfig?.thinkingConfig,
			refusal('Thinking is not supported for this model'),
			geminiReply([{ text: 'Yes.' }]),
		),
		content: 'Yes.',
		requests: 2,
	},
	'Gemini: a blocked prompt': {
		kind: 'google',
		reply: { sse: [{ promptFeedback: { blockReason: 'PROHIBITED_CONTENT' } }] },
		isBlank: true,
		finish_reason: 'content_filter',
	},
	'Gemini: a malformed call': {
		kind: 'google',
		reply: geminiReply([], 'MALFORMED_FUNCTION_CALL'),
		failure: { code: 'model_malformed', retryable: true },
	},
	'Gemini: a retry delay in the body': {
		kind: 'google',
		reply: {
			status: 429,
			json: { error: { code: 429, message: 'quota', status: 'RESOURCE_EXHAUSTED', details: [{ retryDelay: '7s' }] } },
		},
		failure: { code: 'model_rate_limited', retryable: true, retryAfterMs: 7_000 },
	},
	'Gemini: a prompt that is too long': {
		kind: 'google',
		reply: refusal('The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).'),
		failure: { code: 'context_too_long', stated: { window: 1_048_576, request: 1_200_000 } },
	},
	'Gemini: thinking counts as output': {
		kind: 'google',
		reply: geminiReply([{ text: 'Yes.' }], 'STOP', {
			usageMetadata: {
				promptTokenCount: 5,
				candidatesTokenCount: 2,
				thoughtsTokenCount: 3,
				cachedContentTokenCount: 4,
			},
		}),
		content: 'Yes.',
		usage: { input_tokens: 5, output_tokens: 5, cached_tokens: 4, reasoning_tokens: 3 },
	},
}

void t.test(`${Object.keys(quirks).length} quirks of model servers`, async (t) => {
	t.ok(Object.keys(quirks).length >= 40)
	const server = await startScriptedModels()
	t.teardown(() => server.stop())
	for (const [name, quirk] of Object.entries(quirks)) {
		await t.test(name, async (t) => {
			const { reply: script } = quirk
			const { url, requests } = server.add((request, n) => (typeof script === 'function' ? script(request, n) : script))
			const kind = quirk.kind ?? 'openai'
			const order: ModelOrder = { provider: 'p', kind, model: 'm', base_url: url, timeout_ms: 60_000, ...quirk.order }
			const turns: Turn[] = [{ role: 'user', content: 'Is it?' }, ...(quirk.turns?.(order) ?? [])]
			const offered = quirk.parameters ? tools.map((tool) => ({ ...tool, parameters: quirk.parameters ?? {} })) : tools
			const request: ModelRequest = {
				system: quirk.system ?? null,
				turns,
				tools: quirk.withoutTools ? [] : offered,
				...(quirk.form && { form: quirk.form }),
			}
			let streamed = ''
			const io = { signal: new AbortController().signal, onText: (text: string) => (streamed += text) }
			const reply = await (await openProvider(kind)).ask(order, request, io)
			if (quirk.requests !== undefined) t.equal(requests.length, quirk.requests, 'requests')
			if (quirk.lastRequest) t.match(requests.at(-1)?.body, quirk.lastRequest)
			if (quirk.failure) return t.match(reply, { status: 'failed', failure: quirk.failure })
			if (reply.status === 'failed') return t.fail(`${reply.failure.code}: ${reply.failure.message}`)
			const { content, tool_calls, reasoning, finish_reason, usage } = reply.answer
			t.equal(content.trimEnd(), (quirk.content ?? '').trimEnd())
			t.strictSame(
				tool_calls.map((call) => [call.name, JSON.parse(call.arguments)]),
				quirk.calls ?? [],
			)
			t.equal(reasoning, quirk.reasoning)
			if (quirk.finish_reason) t.equal(finish_reason, quirk.finish_reason)
			if (quirk.usage) t.strictSame(usage, quirk.usage)
			t.equal(content === '' && tool_calls.length === 0, quirk.isBlank === true, 'blank')
			if (quirk.calls || quirk.reasoning !== undefined)
				t.notMatch(streamed, /tool_call>\{"name": "memory|<think>It/, 'neither calls nor reasoning are streamed')
			if (quirk.requests !== undefined && quirk.requests > 1) {
				await (await openProvider(kind)).ask(order, request, io)
				t.equal(requests.length, quirk.requests + 1, 'the workaround is remembered')
			}
		})
	}
})

void t.test('a refused request of one caller changes no request of another', async (t) => {
	const server = await startScriptedModels()
	t.teardown(() => server.stop())
	const { url, requests } = server.add(({ body }) => {
		if (body.max_tokens > 100) return refusal('max_tokens is too large: 999. At most 100.', { param: 'max_tokens' })
		if (body.seed !== undefined) return refusal("Unsupported parameter: 'seed'", { param: 'seed' })
		if (body.tools?.length > 2)
			return refusal("Invalid 'tools': array too long. Expected an array with maximum length 2.", { param: 'tools' })
		const bad = body.tools?.findIndex((tool: { function: { name: string } }) => tool.function.name === 'bad') ?? -1
		if (bad < 0) return textReply('Yes.')
		return refusal(`tools.${bad}.custom.input_schema: JSON schema is invalid`, { param: `tools[${bad}].function` })
	})
	const ask = async (params: NonNullable<ModelOrder['params']>, offered = tools): Promise<ScriptedRequest['body']> => {
		const order: ModelOrder = { provider: 'p', kind: 'openai', model: 'm', base_url: url, timeout_ms: 60_000, params }
		const request: ModelRequest = { system: null, turns: [{ role: 'user', content: 'Is it?' }], tools: offered }
		const io = { signal: new AbortController().signal, onText: () => {} }
		t.match(await (await openProvider('openai')).ask(order, request, io), { status: 'answered' })
		return requests.at(-1)?.body
	}
	await ask({ max_tokens: 999, seed: 1 })
	await ask({}, [...tools, { name: 'bad', description: 'Is bad.', parameters: { type: 'object' } }])
	const many = Array.from({ length: 3 }, (_, at) => ({
		name: `t${at}`,
		description: '',
		parameters: { type: 'object' },
	}))
	t.notOk('tools' in (await ask({}, many)), 'too many tools are described in the prompt')
	const body = await ask({ max_tokens: 50, seed: 1 })
	t.equal(body.max_tokens, 50)
	t.match(body.tools, [{ function: { name: NAME } }])
	t.notOk('seed' in body, 'a parameter that the server always refuses is omitted from all requests')
})
