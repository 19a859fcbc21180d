import type { ModelOrder } from '../order.ts'

/** Tokens to which an answer is limited by settings; undefined if only the model's window and the server limit it. */
export function answerBound({ params, sampling, extra_body }: ModelOrder): number | undefined {
	const { max_tokens, max_completion_tokens } = { ...params, ...sampling, ...extra_body } as Record<string, unknown>
	const bound = max_tokens ?? max_completion_tokens
	return typeof bound === 'number' ? bound : undefined
}
