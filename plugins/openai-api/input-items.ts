/** The input of a stored response as items in OpenAI's format. */
import { Joi } from '../../core/util/lazy-joi.ts'
import type { ChatMessage } from '../../core/protocol.ts'
import { paramError } from './errors.ts'
import type { StoredResponse } from './stored.ts'

export interface ItemsQuery {
	limit: number
	order: 'asc' | 'desc'
	after?: string
}

const item = Joi.object({
	id: Joi.string().required(),
	type: Joi.valid('message', 'function_call', 'function_call_output').required(),
	status: Joi.valid('completed').required(),
	role: Joi.valid('user', 'assistant').description('Of a message.'),
	content: Joi.array()
		.items(
			Joi.object({ type: Joi.valid('input_text', 'output_text').required(), text: Joi.string().allow('') }).unknown(),
		)
		.description('Of a message. `[attachment 1]` marks an attachment in the text.'),
	call_id: Joi.string().description('Of a function call and its output.'),
	name: Joi.string().description('Of a function call.'),
	arguments: Joi.string().allow('').description('Of a function call: JSON.'),
	output: Joi.string().allow('').description('Of a function_call_output.'),
}).id('OpenAiStoredItem')

export const itemPage = Joi.object({
	object: Joi.valid('list').required(),
	data: Joi.array().items(item).required(),
	first_id: Joi.string().allow(null).required(),
	last_id: Joi.string().allow(null).required(),
	has_more: Joi.boolean().required(),
}).id('OpenAiItemPage')

export const itemsQuery = Joi.object({
	limit: Joi.number().integer().min(1).max(100).default(20).description('Maximum number of items in a page.'),
	order: Joi.valid('asc', 'desc').default('desc').description('`desc`: newest first.'),
	after: Joi.string().max(128).description('Continue after the item with this id.'),
	include: Joi.any().description('Accepted, without effect.'),
	'include[]': Joi.any().description("As OpenAI's clients write `include`."),
})

/** Throws `not_found` for an item that the response does not have. */
export function itemsOf({ id, input }: StoredResponse, { limit, order, after }: ItemsQuery): Record<string, unknown> {
	const own = id.slice(-32)
	const items = input
		.flatMap(itemsOfMessage)
		.map((item, at) => ({ id: `${prefixes[item.type]}_${own}i${at}`, ...item }))
	if (order === 'desc') items.reverse()
	const at = after === undefined ? -1 : items.findIndex(({ id }) => id === after)
	if (after !== undefined && at < 0) throw paramError('after', `the response has no input item "${after}"`, 'not_found')
	const data = items.slice(at + 1, at + 1 + limit)
	return {
		object: 'list',
		data,
		first_id: data[0]?.id ?? null,
		last_id: data.at(-1)?.id ?? null,
		has_more: at + 1 + limit < items.length,
	}
}

const prefixes = { message: 'msg', function_call: 'fc', function_call_output: 'fco' }

type Item = { type: keyof typeof prefixes } & Record<string, unknown>

function itemsOfMessage(message: ChatMessage): Item[] {
	const { role, content: text } = message
	const status = 'completed'
	if (role === 'tool') return [{ type: 'function_call_output', status, call_id: message.call_id, output: text }]
	if (role === 'user') return [{ type: 'message', status, role, content: [{ type: 'input_text', text }] }]
	const calls = (message.tool_calls ?? []).map(({ id: call_id, name, arguments: args }): Item => ({
		type: 'function_call',
		status,
		call_id,
		name,
		arguments: args,
	}))
	const part = { type: 'output_text', text, annotations: [], logprobs: [] }
	return text === '' ? calls : [{ type: 'message', status, role, content: [part] }, ...calls]
}
