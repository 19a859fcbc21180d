/** The field `include`: what a client wants added to the items of the output. */
import { Joi } from '../../core/util/lazy-joi.ts'

/** Additions to items that no output of this API has: calls of a provider's own tools, reasoning, images. */
const withoutItems: ReadonlySet<unknown> = new Set([
	'code_interpreter_call.outputs',
	'computer_call_output.output.image_url',
	'file_search_call.results',
	'message.input_image.image_url',
	'reasoning.encrypted_content',
	'web_search_call.action.sources',
	'web_search_call.results',
])

/** Client libraries send some of these on their own, such as the sources of a web search. */
export const include = Joi.any()
	.custom((value: unknown, helpers) =>
		value === null || [value].flat().every((one) => withoutItems.has(one))
			? value
			: helpers.message({ custom: '{#label} holds more than agents have: there is nothing to add to the output' }),
	)
	.description('No effect: the output has no items to which anything could be added. Log probabilities are refused.')
