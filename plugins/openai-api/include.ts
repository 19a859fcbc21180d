/** The field `include`: additional data of output items. */
import { Joi } from '../../core/util/lazy-joi.ts'

/** Additions to items that this API never returns: calls of a provider's tools, reasoning, images. */
const withoutEffect: ReadonlySet<unknown> = new Set([
	'code_interpreter_call.outputs',
	'computer_call_output.output.image_url',
	'file_search_call.results',
	'message.input_image.image_url',
	'reasoning.encrypted_content',
	'web_search_call.action.sources',
	'web_search_call.results',
])

/** Client libraries send some of these by default, such as the sources of a web search. */
export const include = Joi.any()
	.custom((value: unknown, helpers) =>
		value === null || [value].flat().every((name) => withoutEffect.has(name))
			? value
			: helpers.message({ custom: '{#label} contains data that agents do not return; leave it out' }),
	)
	.description('No effect: the output has none of the items concerned. Log probabilities are refused.')
