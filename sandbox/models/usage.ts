import type { Usage } from '../../core/protocol.ts'
import type { ModelRequest } from './provider.ts'
import { countIn } from './values.ts'

/** OpenAI's rule of thumb for English text. Used if a server reports no usage, so that limits still apply. */
const CHARACTERS_PER_TOKEN = 4

export function estimateUsage(request: ModelRequest, answer: string): Usage {
	let characters = request.system?.length ?? 0
	for (const turn of request.turns) {
		characters += turn.content.length
		if (turn.role === 'assistant') for (const call of turn.tool_calls) characters += call.arguments.length
	}
	if (request.tools.length > 0) characters += JSON.stringify(request.tools).length
	return {
		input_tokens: Math.ceil(characters / CHARACTERS_PER_TOKEN),
		output_tokens: Math.ceil(answer.length / CHARACTERS_PER_TOKEN),
	}
}

/** The counts of a server; undefined if it does not report the tokens of both request and answer. */
export function countedUsage(counts: {
	input: unknown
	output: unknown
	cached: unknown
	reasoning: unknown
}): Usage | undefined {
	const input_tokens = countIn(counts.input)
	const output_tokens = countIn(counts.output)
	if (input_tokens === undefined || output_tokens === undefined) return undefined
	const cached_tokens = countIn(counts.cached)
	const reasoning_tokens = countIn(counts.reasoning)
	return {
		input_tokens,
		output_tokens,
		...(cached_tokens && { cached_tokens }),
		...(reasoning_tokens && { reasoning_tokens }),
	}
}
