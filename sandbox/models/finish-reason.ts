import type { FinishReason } from '../../core/protocol.ts'

/** By the providers' finish reasons in lower case. */
const known: Readonly<Record<string, FinishReason>> = {
	stop: 'stop',
	end_turn: 'stop',
	stop_sequence: 'stop',
	eos: 'stop',
	eos_token: 'stop',
	end: 'stop',
	complete: 'stop',
	completed: 'stop',
	tool_calls: 'tool_calls',
	tool_call: 'tool_calls',
	tool_use: 'tool_calls',
	function_call: 'tool_calls',
	length: 'length',
	max_tokens: 'length',
	max_output_tokens: 'length',
	model_length: 'length',
	model_context_window_exceeded: 'length',
	content_filter: 'content_filter',
	refusal: 'content_filter',
	sensitive: 'content_filter',
	safety: 'content_filter',
	recitation: 'content_filter',
	blocklist: 'content_filter',
	prohibited_content: 'content_filter',
	spii: 'content_filter',
	language: 'content_filter',
	image_safety: 'content_filter',
}

/**
 * Maps a provider's finish reason, in any letter case. An answer with tool calls and `stop`, as some servers send, has
 * `tool_calls`; one with `tool_calls` and no calls has `stop`.
 */
export function finishReason(word: string, hasCalls: boolean): FinishReason {
	const reason = Object.hasOwn(known, word.toLowerCase()) ? known[word.toLowerCase()] : undefined
	if (reason === 'length' || reason === 'content_filter') return reason
	if (hasCalls) return 'tool_calls'
	return reason === 'tool_calls' ? 'stop' : (reason ?? 'other')
}
