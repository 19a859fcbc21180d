/** The field `messages` of a chat completion. */
import { Joi } from '../../core/util/lazy-joi.ts'
import type { RequestMessage } from './contract.ts'
import { paramError } from './errors.ts'
import { content, parseContent, textOf } from './content.ts'
import type { MessageContent } from './content.ts'

export interface ChatInput {
	role: 'system' | 'developer' | 'user' | 'assistant' | 'tool'
	content?: MessageContent
	name?: string | null
	tool_calls?: { id: string; type: 'function'; function: { name: string; arguments: string } }[] | null
	tool_call_id?: string
}

const call = Joi.object({
	id: Joi.string().min(1).max(256).required(),
	type: Joi.valid('function').required(),
	function: Joi.object({
		name: Joi.string().min(1).max(128).required(),
		arguments: Joi.string().allow('').required().description('JSON, as the model wrote it.'),
		parsed_arguments: Joi.any(),
	}).required(),
	index: Joi.number().integer(),
}).id('OpenAiToolCall')

/** Fields of answers that clients send back. Ignored. */
const leftovers = {
	id: Joi.any(),
	refusal: Joi.string().allow('', null),
	annotations: Joi.array(),
	reasoning: Joi.any(),
	reasoning_content: Joi.any(),
	parsed: Joi.any(),
	audio: Joi.valid(null),
	function_call: Joi.valid(null),
}

export const messages = Joi.array()
	.items(
		Joi.object({
			role: Joi.valid('system', 'developer', 'user', 'assistant', 'tool').required(),
			content: content.allow(null),
			name: Joi.string().max(256).allow('', null).description("The user's name, added before the message."),
			tool_calls: Joi.array().items(call).max(128).allow(null),
			tool_call_id: Joi.string().max(256).description('Of a message of the role tool: the call that it answers.'),
			...leftovers,
		}).id('OpenAiMessage'),
	)
	.min(1)
	.description('The whole conversation. System messages are added to the persona, for this run only.')

export function messagesOf(inputs: readonly ChatInput[]): RequestMessage[] {
	return inputs.map((input, at) => messageOf(input, `messages[${at}]`))
}

function messageOf({ role, content: value, name, tool_calls, tool_call_id }: ChatInput, param: string): RequestMessage {
	const place = `${param}.content`
	switch (role) {
		case 'system':
		case 'developer':
			return { role: 'system', content: textOf(value, place) }
		case 'user': {
			const { content: text, ...attached } = parseContent(value, place)
			return { role, content: name ? `${name}: ${text}` : text, ...attached }
		}
		case 'tool':
			if (tool_call_id === undefined)
				throw paramError(`${param}.tool_call_id`, `${param} lacks tool_call_id, the call that it answers`)
			return { role, call_id: tool_call_id, name: '', ok: true, ...parseContent(value, place) }
		case 'assistant': {
			const calls = (tool_calls ?? []).map(({ id, function: call }) => ({ id, ...call }))
			return { role, content: textOf(value, place), ...(calls.length > 0 && { tool_calls: calls }) }
		}
	}
}
