/** Anthropic's Messages API. */
import { fieldsOf, isObject } from '../../core/util/is-object.ts'
import { wireName } from '../wire-name.ts'
import type { ModelOrder } from '../order.ts'
import { MessageReader } from './anthropic-answer.ts'
import { providerOf } from './dialect.ts'
import { argumentsIn, pairCalls } from './past-calls.ts'
import { shownOf } from '../attachments/shown.ts'
import type { AcceptedMedia } from '../attachments/shown.ts'
import type { ModelRequest, Provider, Turn } from './provider.ts'
import { openState, stateOf } from './provider-state.ts'
import { renamedParameters, simpleParameters } from './tool-parameters.ts'
import { toolsInText } from './tools-in-text.ts'
import { supportedForm } from './traits.ts'
import type { Traits } from './traits.ts'
import { listIn } from './values.ts'

/** The only version of the API. */
const VERSION = '2023-06-01'

export const anthropic: Provider = providerOf({
	kind: 'anthropic',
	optional: [
		'temperature',
		'top_p',
		'max_tokens',
		'stop_sequences',
		'thinking',
		'output_config',
		'cache_control',
		'tool_choice',
	],
	expected: 'a message; is base_url right? It ends in /v1',
	requestOf: (order, request, traits) => ({
		path: '/messages',
		headers: { 'anthropic-version': VERSION, ...(order.api_key && { 'x-api-key': order.api_key }) },
		body: messageBody(order, request, traits),
	}),
	readerFor: (answer) => new MessageReader(answer),
})

/** The API requires a limit. Old models refuse the first and accept the second. */
const MAX_TOKENS = 8_192
const OLD_MAX_TOKENS = 4_096
/** The lowest thinking budget that the API accepts, and the tokens that an answer needs besides. */
const LEAST_BUDGET = 1_024

const BUDGETS: Readonly<Record<string, number>> = {
	minimal: 1_024,
	low: 2_048,
	medium: 8_192,
	high: 16_384,
	xhigh: 24_576,
	max: 32_768,
}

type Block = Record<string, unknown>
interface Message {
	role: 'user' | 'assistant'
	content: Block[]
}

export function messageBody(order: ModelOrder, asked: ModelRequest, traits: Traits): Record<string, unknown> {
	// The API refuses earlier tool calls in a request that offers no tools.
	const request = asked.tools.length === 0 ? toolsInText(asked) : asked
	const { system, tools, turns } = request
	const params = { ...order.params, ...order.sampling } as Record<string, unknown>
	const { temperature, top_p, stop, parallel_tool_calls } = params
	const drop = new Set(traits.drop)
	const { json, call } = supportedForm(asked.form, traits)
	// With thinking, the API does not allow a forced tool call.
	const mayThink = !drop.has('thinking') && !call && isContinuable(order, turns)
	const thinking = mayThink ? thinkingOf(params, traits) : {}
	const output = {
		...fieldsOf(fieldsOf(thinking).output_config),
		...(json?.schema && { format: { type: 'json_schema', schema: json.schema } }),
	}
	const choice = {
		...(call ? (call.length > 1 ? { type: 'any' } : { type: 'tool', name: call[0] }) : { type: 'auto' }),
		...(parallel_tool_calls === false && { disable_parallel_tool_use: true }),
	}
	const thinks = 'thinking' in thinking
	const body: Record<string, unknown> = {
		model: order.model,
		max_tokens: drop.has('max_tokens') ? OLD_MAX_TOKENS : (params.max_tokens ?? MAX_TOKENS + budgetIn(thinking)),
		...(system !== null && { system: [{ type: 'text', text: system }] }),
		messages: messagesOf(order, request, traits),
		...(tools.length > 0 && {
			tools: tools.map(({ name, description, parameters }) => ({
				name: wireName(name),
				description,
				input_schema: traits.simple_schemas ? simpleParameters(parameters) : renamedParameters(parameters),
			})),
		}),
		...(tools.length > 0 && (call || parallel_tool_calls === false) && { tool_choice: choice }),
		...(traits.streaming !== false && { stream: true }),
		// With thinking, only the default temperature is accepted.
		...(typeof temperature === 'number' && !thinks && { temperature: Math.min(temperature, 1) }),
		...(top_p !== undefined && !thinks && temperature === undefined && { top_p }),
		...(stop !== undefined && { stop_sequences: [stop].flat() }),
		...thinking,
		...(Object.keys(output).length > 0 && { output_config: output }),
		...order.extra_body,
	}
	if (!drop.has('cache_control')) markForCache(body)
	for (const field of drop) if (field !== 'max_tokens') delete body[field]
	return body
}

/** No thinking unless an effort is set. Newer models choose the budget themselves. */
function thinkingOf({ reasoning_effort: effort, max_tokens }: Record<string, unknown>, traits: Traits): object {
	if (typeof effort !== 'string' || effort === 'none') return {}
	if (traits.adaptive_thinking) {
		const level = effort === 'minimal' ? 'low' : effort
		return { thinking: { type: 'adaptive', display: 'summarized' }, output_config: { effort: level } }
	}
	const wanted = BUDGETS[effort] ?? MAX_TOKENS
	const budget = typeof max_tokens === 'number' ? Math.min(wanted, max_tokens - LEAST_BUDGET) : wanted
	return budget < LEAST_BUDGET ? {} : { thinking: { type: 'enabled', budget_tokens: budget } }
}

function budgetIn(thinking: object): number {
	const { budget_tokens } = fieldsOf(fieldsOf(thinking).thinking)
	return typeof budget_tokens === 'number' ? budget_tokens : 0
}

/**
 * Thinking can continue only if the answers since the last prompt are sent back unchanged. That is impossible if another model gave
 * them, or if a secret was redacted; then this model answers without thinking.
 */
function isContinuable(order: ModelOrder, turns: readonly Turn[]): boolean {
	const since = turns.slice(turns.findLastIndex(({ role }) => role === 'user') + 1)
	return since.every(
		(turn) => turn.role !== 'assistant' || turn.tool_calls.length === 0 || openState(order, turn) !== undefined,
	)
}

function messagesOf(order: ModelOrder, request: ModelRequest, traits: Traits): Message[] {
	const messages: Message[] = []
	for (const turn of request.turns) {
		const role = turn.role === 'assistant' ? 'assistant' : 'user'
		const content = blocksOf(order, request, turn, traits)
		const last = messages.at(-1)
		if (content.length === 0) continue
		if (last?.role === role) last.content.push(...content)
		else messages.push({ role, content })
	}
	const isBegun = messages[0]?.role === 'user'
	return isBegun ? messages : [{ role: 'user', content: [{ type: 'text', text: '…' }] }, ...messages]
}

const ACCEPTED: AcceptedMedia = {
	images: new Set(['image/png', 'image/jpeg', 'image/gif', 'image/webp']),
	// The API accepts 5 MiB of base64.
	image_bytes: 3.75 * 1024 * 1024,
	files: new Set(['application/pdf']),
	audio: new Set(),
}

function contentOf(turn: Turn, request: ModelRequest, traits: Traits): Block[] {
	return shownOf(turn, request, traits, ACCEPTED).flatMap((shown): Block[] => {
		if (shown.kind === 'text') return textBlock(shown.text)
		const source = { type: 'base64', media_type: shown.media_type, data: shown.base64 }
		return [shown.kind === 'image' ? { type: 'image', source } : { type: 'document', source, title: shown.name }]
	})
}

function blocksOf(order: ModelOrder, request: ModelRequest, turn: Turn, traits: Traits): Block[] {
	switch (turn.role) {
		case 'user':
			return contentOf(turn, request, traits)
		case 'tool': {
			const tool_use_id = safeId(turn.call_id)
			const content = contentOf(turn, request, traits)
			return [{ type: 'tool_result', tool_use_id, content, ...(!turn.ok && { is_error: true }) }]
		}
		case 'assistant': {
			const { tool_calls } = turn
			const state = stateOf(order, turn, traits)
			const blocks = listIn(state.content).map(fieldsOf)
			const made = blocks.filter(({ type }) => type === 'tool_use')
			const pairs = pairCalls(made, tool_calls)
			if (blocks.length === 0 || !pairs) {
				const calls = tool_calls.map(({ id, name, arguments: args }) => {
					return { type: 'tool_use', id: safeId(id), name: wireName(name), input: argumentsIn(args) }
				})
				return [...textBlock(turn.content), ...calls]
			}
			return blocks.flatMap((block) => {
				if (block.type !== 'tool_use') return [block]
				const call = pairs[made.indexOf(block)]
				return call ? [{ ...block, id: safeId(call.id) }] : []
			})
		}
	}
}

/** Blank text is refused. */
function textBlock(text: string): Block[] {
	return text.trim() === '' ? [] : [{ type: 'text', text }]
}

/** Ids of other providers may contain characters that the API refuses. */
function safeId(id: string): string {
	return id.replace(/[^a-zA-Z0-9_-]/g, '_')
}

/** Marks the parts that the next request begins with: tools and system prompt, the earlier turns, and the current turn so far. */
function markForCache(body: Record<string, unknown>): void {
	const messages = listIn(body.messages) as Message[]
	const prompt = messages.findLastIndex(
		({ role, content }) => role === 'user' && content.every(({ type }) => type !== 'tool_result'),
	)
	mark(listIn(body.system).at(-1) ?? listIn(body.tools).at(-1))
	for (const message of new Set([messages[prompt - 1], messages.at(-1)])) mark(message?.content.at(-1))
}

function mark(block: unknown): void {
	if (!isObject(block) || block.type === 'thinking' || block.type === 'redacted_thinking') return
	block.cache_control = { type: 'ephemeral' }
}
