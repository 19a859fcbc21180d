import type OpenAI from 'openai'
import { wireName } from '../../core/protocol.ts'
import type { ModelOrder, ToolSpec } from '../../core/protocol.ts'
import type { ModelRequest, Turn } from './provider.ts'

type Body = OpenAI.ChatCompletionCreateParamsStreaming
type Message = OpenAI.ChatCompletionMessageParam

export function bodyOf(order: ModelOrder, request: ModelRequest): Body {
	const { max_tokens, ...params } = order.params ?? {}
	const messages: Message[] = request.turns.map(messageOf)
	if (request.system !== null) messages.unshift({ role: 'system', content: request.system })
	return {
		model: order.model,
		messages,
		stream: true,
		stream_options: { include_usage: true },
		...(request.tools.length > 0 && { tools: request.tools.map(toolOf) }),
		...(params as Partial<Body>),
		...(max_tokens !== undefined && { [maxTokensField(order)]: max_tokens }),
		...order.sampling,
	}
}

function messageOf(turn: Turn): Message {
	switch (turn.role) {
		case 'user':
			return { role: 'user', content: turn.content }
		case 'tool':
			return { role: 'tool', tool_call_id: turn.call_id, content: turn.content }
		case 'assistant': {
			const { content, tool_calls } = turn
			if (tool_calls.length === 0) return { role: 'assistant', content }
			return {
				role: 'assistant',
				content: content === '' ? null : content,
				tool_calls: tool_calls.map((call) => ({
					id: call.id,
					type: 'function',
					function: { name: wireName(call.name), arguments: parseable(call.arguments) },
				})),
			}
		}
	}
}

function toolOf({ name, description, parameters }: ToolSpec): OpenAI.ChatCompletionTool {
	return { type: 'function', function: { name: wireName(name), description, parameters } }
}

/** Some servers parse the calls that they get back and refuse the whole conversation for one that is broken. */
function parseable(args: string): string {
	try {
		JSON.parse(args)
		return args
	} catch {
		return '{}'
	}
}

/** OpenAI's newer models refuse `max_tokens`; most other servers know no other name. */
function maxTokensField({ base_url }: ModelOrder): 'max_tokens' | 'max_completion_tokens' {
	const isOpenAI = base_url === undefined || new URL(base_url).hostname.endsWith('.openai.com')
	return isOpenAI ? 'max_completion_tokens' : 'max_tokens'
}
