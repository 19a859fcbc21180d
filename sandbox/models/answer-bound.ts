import { fieldsOf } from '../../core/util/is-object.ts'
import type { ModelOrder } from '../order.ts'

/** The names of the limit in all APIs. Only names that the server supports are set. */
const NAMES = [
	'max_tokens',
	'max_completion_tokens',
	'max_output_tokens',
	'maxOutputTokens',
	'num_predict',
	'n_predict',
] as const

/** The limit of an answer in tokens, from settings; undefined if only the model's window and the server limit it. */
export function answerBound(order: ModelOrder): number | undefined {
	return boundInBody(order) ?? boundIn(order.sampling) ?? order.params?.max_tokens
}

/** The limit in `extra_body`, which overrides all other settings. */
export function boundInBody({ extra_body }: ModelOrder): number | undefined {
	if (!extra_body) return undefined
	return boundIn({ ...extra_body, ...fieldsOf(extra_body.options), ...fieldsOf(extra_body.generationConfig) })
}

/** With Ollama, a negative number means no limit. */
function boundIn(settings: Readonly<Record<string, unknown>> = {}): number | undefined {
	const bound = NAMES.map((name) => settings[name]).find((value) => typeof value === 'number' && value > 0)
	return bound as number | undefined
}
