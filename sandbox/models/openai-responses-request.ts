import { wireName } from '../wire-name.ts'
import type { ModelOrder } from '../order.ts'
import { pairCalls } from './pair-calls.ts'
import { dataUrl, shownOf, textIn } from '../attachments/shown.ts'
import type { AcceptedMedia } from '../attachments/shown.ts'
import { callId } from './call-id.ts'
import type { ModelRequest, Turn } from './provider.ts'
import { stateOf } from './provider-state.ts'
import { simpleParameters } from './simple-schema.ts'
import { supportedForm } from './traits.ts'
import type { Traits } from './traits.ts'
import { listIn, objectIn, parseable } from './values.ts'

/** Models that do not reason refuse requests for a summary of reasoning. */
const WITHOUT_REASONING = /^(gpt-[34]|chatgpt-4)/

export function responseBody(order: ModelOrder, request: ModelRequest, traits: Traits): Record<string, unknown> {
	const { system, turns, tools } = request
	const params = { ...order.params, ...order.sampling } as Record<string, unknown>
	const { temperature, top_p, max_tokens, parallel_tool_calls, reasoning_effort, verbosity } = params
	const reasons = !WITHOUT_REASONING.test(order.model)
	const reasoning = {
		...(reasoning_effort !== undefined && { effort: reasoning_effort }),
		...(reasons && { summary: 'auto' }),
	}
	const { json, call } = supportedForm(request.form, traits)
	const text = {
		...(verbosity !== undefined && { verbosity }),
		...(json && { format: json.schema ? { type: 'json_schema', ...json } : { type: 'json_object' } }),
	}
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
		...(temperature !== undefined && { temperature }),
		...(top_p !== undefined && { top_p }),
		...(max_tokens !== undefined && { max_output_tokens: max_tokens }),
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
		case 'tool':
			return [
				{
					type: 'function_call_output',
					call_id: callId(turn.call_id, traits),
					output: contentOf(turn, request, traits),
				},
			]
		case 'assistant': {
			const { content, tool_calls } = turn
			const output = listIn(stateOf(order, turn, traits).output).map(objectIn)
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
			const { [inner]: _, ...rest } = objectIn(body[field])
			if (Object.keys(rest).length > 0) body[field] = rest
			else delete body[field]
		}
	}
	return body
}
