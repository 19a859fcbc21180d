/** The field `input` of a response: text, or items. */
import { Joi } from '../../core/util/lazy-joi.ts'
import type { ChatMessage } from '../../core/protocol.ts'
import type { RequestMessage } from './contract.ts'
import { paramError } from './errors.ts'
import { content, parseContent, textOf } from './content.ts'
import type { MessageContent } from './content.ts'

export interface InputItem {
	type?: string
	id?: unknown
	role?: string
	content?: MessageContent
	call_id?: string
	name?: string
	arguments?: string
	output?: MessageContent
}

export const input = Joi.alternatives(
	Joi.string().min(1),
	Joi.array()
		.items(
			Joi.object({
				type: Joi.string()
					.max(64)
					.description(
						'message (the default), function_call, function_call_output, item_reference; reasoning is ignored.',
					),
				role: Joi.string().max(64).description('Of a message: user, assistant, system or developer.'),
				content: content.allow(null).description('Of a message: text, or parts.'),
				call_id: Joi.string().max(256).description('Of a function call and its output.'),
				name: Joi.string().max(128).description('Of a function call.'),
				arguments: Joi.string().allow('').description('Of a function call: JSON.'),
				output: content.allow(null).description('Of a function_call_output.'),
			})
				.unknown()
				.id('OpenAiInputItem'),
		)
		.min(1),
).description('A message of the user, or items: messages and outputs of functions.')

export function messagesOf(value: string | readonly InputItem[]): RequestMessage[] {
	if (typeof value === 'string') return [{ role: 'user', content: value }]
	const messages: RequestMessage[] = []
	for (const [at, item] of value.entries()) {
		const param = `input[${at}]`
		const { type = 'message' } = item
		if (type === 'reasoning') continue // only the model that wrote it would accept it
		const message = type === 'function_call' ? withCall(messages, item, param) : messageOf(item, type, param)
		if (message) messages.push(message)
	}
	return messages
}

function messageOf(item: InputItem, type: string, param: string): RequestMessage {
	if (type === 'function_call_output') {
		const { call_id, output } = item
		if (call_id === undefined)
			throw paramError(`${param}.call_id`, `${param} lacks call_id, the call whose output it is`)
		return { role: 'tool', call_id, name: '', ok: true, ...parseContent(output, `${param}.output`) }
	}
	if (type !== 'message')
		throw paramError(
			param,
			`${param} has the type "${type}"; supported types are message, function_call and function_call_output`,
		)
	const { role } = item
	const place = `${param}.content`
	if (role === 'system' || role === 'developer') return { role: 'system', content: textOf(item.content, place) }
	if (role === 'user') return { role, ...parseContent(item.content, place) }
	if (role === 'assistant') return { role, content: textOf(item.content, place) }
	throw paramError(`${param}.role`, `${param}.role must be user, assistant, system or developer`)
}

/** Text and calls of an answer are separate items here, but one message for a model. Undefined if added to the last message. */
function withCall(messages: RequestMessage[], item: InputItem, param: string): ChatMessage | undefined {
	const { call_id: id, name, arguments: args } = item
	if (id === undefined || name === undefined || args === undefined)
		throw paramError(param, `${param}, a function_call, must have call_id, name and arguments`)
	const call = { id, name, arguments: args }
	const last = messages.at(-1)
	if (last?.role !== 'assistant') return { role: 'assistant', content: '', tool_calls: [call] }
	last.tool_calls ??= []
	last.tool_calls.push(call)
	return undefined
}
