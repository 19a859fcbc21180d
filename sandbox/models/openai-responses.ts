/** OpenAI's Responses API, stateless: the server stores nothing and returns reasoning encrypted. */
import { defined } from '../../core/util/defined.ts'
import { fieldsOf } from '../../core/util/is-object.ts'
import { wireName } from '../wire-name.ts'
import type { ModelOrder } from '../order.ts'
import { providerOf } from './dialect.ts'
import type { ServerError } from './failures.ts'
import { bearer } from './http.ts'
import { ResponseReader } from './openai-responses-answer.ts'
import { callId, pairCalls, parseable } from './past-calls.ts'
import { dataUrl, shownOf, textIn } from '../attachments/shown.ts'
import type { AcceptedMedia } from '../attachments/shown.ts'
import type { ModelRequest, Provider, Turn } from './provider.ts'
import { stateOf } from './provider-state.ts'
import { simpleParameters } from './tool-parameters.ts'
import { supportedForm } from './traits.ts'
import type { Traits } from './traits.ts'
import { listIn } from './values.ts'

export const openaiResponses: Provider = providerOf({
	kind: 'openai-responses',
	optional: [
		'temperature',
		'top_p',
		'max_output_tokens',
		'parallel_tool_calls',
		'reasoning.summary',
		'reasoning.effort',
		'reasoning',
		'text.verbosity',
		'include',
		'store',
	],
	expected: 'a response; a server without /responses is of kind openai',
	requestOf: (order, request, traits) => ({
		path: '/responses',
		headers: bearer(order),
		body: responseBody(order, request, traits),
	}),
	readerFor: (answer) => new ResponseReader(answer),
	named,
})

/** The refusal of encrypted reasoning names no field. */
function named(reported: ServerError): ServerError {
	return /encrypted content is not supported/i.test(reported.message) ? { ...reported, param: 'include' } : reported
}

/** Models that do not reason refuse requests for a summary of reasoning. */
const WITHOUT_REASONING = /^(gpt-[34]|chatgpt-4)/

export function responseBody(order: ModelOrder, request: ModelRequest, traits: Traits): Record<string, unknown> {
	const { system, turns, tools } = request
	const params = { ...order.params, ...order.sampling } as Record<string, unknown>
	const { temperature, top_p, max_tokens, parallel_tool_calls, reasoning_effort, verbosity } = params
	const reasons = !WITHOUT_REASONING.test(order.model)
	const reasoning = defined({ effort: reasoning_effort, summary: reasons ? 'auto' : undefined })
	const { json, call } = supportedForm(request.form, traits)
	const format = json && (json.schema ? { type: 'json_schema', ...json } : { type: 'json_object' })
	const text = defined({ verbosity, format })
	const body: Record<string, unknown> = {
		model: order.model,
		...(system !== null && { instructions: system }),
		input: turns.flatMap((turn) => itemsOf(order, request, turn, traits)),
		...(tools.length > 0 && {
			tools: tools.map(({ name, description, parameters }) => ({
				type: 'function',
				name: wireName(name),
				description,
				parameters: traits.simple_schemas ? simpleParameters(parameters) : parameters,
				strict: false,
			})),
		}),
		...(tools.length > 0 && parallel_tool_calls !== undefined && { parallel_tool_calls }),
		store: false,
		...(reasons && { include: ['reasoning.encrypted_content'] }),
		...(traits.streaming !== false && { stream: true }),
		...defined({ temperature, top_p, max_output_tokens: max_tokens }),
		...(Object.keys(reasoning).length > 0 && { reasoning }),
		...(Object.keys(text).length > 0 && { text }),
		...(call && { tool_choice: call.length > 1 ? 'required' : { type: 'function', name: call[0] } }),
		...order.extra_body,
	}
	return without(body, traits.drop ?? [])
}

const ACCEPTED: AcceptedMedia = {
	images: new Set(['image/png', 'image/jpeg', 'image/gif', 'image/webp']),
	files: new Set(['application/pdf']),
	audio: new Set(),
}

/** A string for text only, otherwise a list of parts. */
function contentOf(turn: Turn, request: ModelRequest, traits: Traits): string | object[] {
	const shown = shownOf(turn, request, traits, ACCEPTED)
	if (shown.every((one) => one.kind === 'text')) return textIn(shown)
	return shown.map((one) => {
		if (one.kind === 'text') return { type: 'input_text', text: one.text }
		if (one.kind === 'image') return { type: 'input_image', image_url: dataUrl(one), detail: 'auto' }
		return { type: 'input_file', filename: one.name, file_data: dataUrl(one) }
	})
}

function itemsOf(order: ModelOrder, request: ModelRequest, turn: Turn, traits: Traits): unknown[] {
	switch (turn.role) {
		case 'user':
			return [{ role: 'user', content: contentOf(turn, request, traits) }]
		case 'tool': {
			const output = contentOf(turn, request, traits)
			return [{ type: 'function_call_output', call_id: callId(turn.call_id, traits), output }]
		}
		case 'assistant': {
			const { content, tool_calls } = turn
			const output = listIn(stateOf(order, turn, traits).output).map(fieldsOf)
			const made = output.filter((item) => item.type === 'function_call')
			const pairs = pairCalls(
				made.map(({ call_id, name }) => ({ id: call_id, name })),
				tool_calls,
			)
			if (output.length === 0 || !pairs) {
				const calls = tool_calls.map((call) => ({
					type: 'function_call',
					call_id: callId(call.id, traits),
					name: wireName(call.name),
					arguments: parseable(call.arguments),
				}))
				// llama.cpp does not recognise an answer without its type.
				return [...(content === '' ? [] : [{ type: 'message', role: 'assistant', content }]), ...calls]
			}
			const items: unknown[] = []
			/** Sent only with the item that follows it: the API refuses reasoning alone. */
			let reasoning: unknown[] = []
			for (const [at, item] of output.entries()) {
				if (item.type === 'reasoning') {
					// The item after the previous reasoning was omitted, so that reasoning is too.
					if (output[at - 1]?.type !== 'reasoning') reasoning = []
					reasoning.push(item)
					continue
				}
				// The server stores nothing, so ids of items other than reasoning have no meaning.
				const { id: _, ...said } = item
				const call = pairs[made.indexOf(item)]
				if (item.type === 'function_call' && !call) continue
				items.push(...reasoning, call ? { ...said, call_id: callId(call.id, traits) } : said)
				reasoning = []
			}
			return items
		}
	}
}

/** Removes fields. A path such as `reasoning.summary` names a nested field. */
function without(body: Record<string, unknown>, drop: readonly string[]): Record<string, unknown> {
	for (const path of drop) {
		const [field = '', inner] = path.split('.')
		if (inner === undefined) delete body[field]
		else {
			const { [inner]: _, ...rest } = fieldsOf(body[field])
			if (Object.keys(rest).length > 0) body[field] = rest
			else delete body[field]
		}
	}
	return body
}
