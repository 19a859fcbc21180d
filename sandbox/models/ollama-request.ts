/** A request in the form of Ollama's own API. */
import { wireName } from '../wire-name.ts'
import type { ModelOrder } from '../order.ts'
import { shownOf, textIn } from '../attachments/shown.ts'
import type { AcceptedMedia } from '../attachments/shown.ts'
import { windowOf } from '../context/estimate.ts'
import { toolsOf } from './openai-request.ts'
import type { ModelRequest, Turn } from './provider.ts'
import { stateOf } from './provider-state.ts'
import { supportedForm } from './traits.ts'
import type { Traits } from './traits.ts'
import { argumentsIn, objectIn } from './values.ts'

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
		...(tools.length > 0 && {
			tools: toolsOf(tools, traits),
		}),
		stream: traits.streaming !== false,
		// With a format, models call no tools.
		...(json && tools.length === 0 && { format: json.schema ?? 'json' }),
		...(typeof reasoning_effort === 'string' && { think: thinkOf(order.model, reasoning_effort) }),
		...extra,
		options: {
			num_ctx: order.context_window ?? windowOf(order.model),
			...(max_tokens !== undefined && { num_predict: max_tokens }),
			...(temperature !== undefined && { temperature }),
			...(top_p !== undefined && { top_p }),
			...(stop !== undefined && { stop: [stop].flat() }),
			...(seed !== undefined && { seed }),
			...(presence_penalty !== undefined && { presence_penalty }),
			...(frequency_penalty !== undefined && { frequency_penalty }),
			...objectIn(options),
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
