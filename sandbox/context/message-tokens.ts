/** How many tokens a message or a tool takes in a request, by the estimate. */
import type { ChatMessage, ToolSpec } from '../../core/protocol.ts'
import { tokensOfAttachment } from '../attachments/tokens.ts'
import type { Turn } from '../models/provider.ts'
import { tokensIn } from './estimate.ts'

/** What a message takes besides its text. */
export const MESSAGE_TOKENS = 6

const counted = new WeakMap<object, number>()

/** Counted once, and kept with the message. */
export function tokensOf(turn: Turn | ChatMessage): number {
	let tokens = counted.get(turn)
	if (tokens === undefined) {
		tokens = tokensIn(turn.content) + MESSAGE_TOKENS
		if (turn.role !== 'assistant') for (const one of turn.attachments ?? []) tokens += tokensOfAttachment(one)
		if (turn.role === 'assistant')
			for (const call of turn.tool_calls ?? [])
				tokens += tokensIn(call.name) + tokensIn(call.arguments) + MESSAGE_TOKENS * 2
		if (turn.role === 'assistant' && turn.provider_state) tokens += tokensIn(turn.provider_state.data)
		counted.set(turn, tokens)
	}
	return tokens
}

export function tokensOfTool(tool: ToolSpec): number {
	let tokens = counted.get(tool)
	if (tokens === undefined) {
		tokens = tokensIn(JSON.stringify([tool.name, tool.description, tool.parameters])) + MESSAGE_TOKENS * 2
		counted.set(tool, tokens)
	}
	return tokens
}
