import type { ChatMessage } from '../../core/protocol.ts'
import type { Turn } from '../models/provider.ts'

type Assistant<T extends { role: string }> = Extract<T, { role: 'assistant' }>

/** The same object where it has its calls: what was counted and made of a message is kept by the object. */
export function withCalls(message: Assistant<ChatMessage>): Assistant<Turn> {
	const { tool_calls } = message
	return tool_calls ? (message as Assistant<Turn>) : { ...message, tool_calls: [] }
}
