/** Fields that chat completions and responses share, and the handling of unsupported fields. */
import type { CustomValidator, Schema } from 'joi'
import { Joi } from '../../core/util/lazy-joi.ts'
import type { RunInputs } from '../runs/contract.ts'

export const model = Joi.string()
	.min(1)
	.max(128)
	.description('An agent: `svc/<name>`, or just its name.')
	.example('svc/ada')
export const effort = Joi.string().max(32).description('Passed to the model.')
export const verbosity = Joi.valid('low', 'medium', 'high').description('Passed to the model.')

export const identifier = Joi.string().pattern(/^[a-zA-Z0-9_-]{1,64}$/, '1 to 64 letters, digits, _ or -')
export const toolFields = {
	name: identifier.required().description("Must differ from the names of the agent's tools."),
	description: Joi.string().allow('', null).max(16_384),
	parameters: Joi.object().unknown().allow(null).description('JSON Schema of the arguments.'),
	strict: Joi.boolean()
		.allow(null)
		.description('No effect: the model provider decides how closely it follows the schema.'),
}

const noEffect = 'Accepted, without effect.'
export const shared = {
	temperature: Joi.number().min(0).max(2).allow(null).description("Replaces the agent's own."),
	top_p: Joi.number().min(0).max(1).allow(null).description('Passed to the model.'),
	stream: Joi.boolean().allow(null).description('Whether to respond with a stream of events.'),
	user: Joi.string()
		.max(512)
		.allow('', null)
		.description(
			'Names a stored conversation if the setting `user_is_conversation` is true. Otherwise without effect.',
		),
	metadata: Joi.object().pattern(Joi.string().max(64), Joi.string().allow('').max(512)).max(16).allow(null),
	parallel_tool_calls: Joi.boolean()
		.allow(null)
		.description("False: at most one call of the client's tools per answer."),
	tool_choice: Joi.any().description(
		'`auto`, `none` (the tools of the request are not offered), `required`, a function, or `allowed_tools`. The agent always has its own tools.',
	),
	safety_identifier: Joi.string().allow('', null).description(noEffect),
	prompt_cache_key: Joi.string().allow('', null).description(noEffect),
	prompt_cache_retention: Joi.string().allow(null).description(noEffect),
	prompt_cache_options: Joi.object().unknown().description(noEffect),
	client_metadata: Joi.any().description('Ignored, and listed in `x-svc-ignored`.'),
	service_tier: Joi.any()
		.custom(only(['auto', 'default', null], 'must be auto or default'))
		.description('`auto` or `default`.'),
	moderation: refused('is not supported'),
	top_logprobs: refused('is not supported: an agent returns no probabilities', [0]),
}

/** Fields that are passed to the model unchanged. */
const passed = [
	'top_p',
	'frequency_penalty',
	'presence_penalty',
	'seed',
	'stop',
	'reasoning_effort',
	'verbosity',
] as const

/** The fields of a request for its model calls. The schema checks their values. */
export type Sampling = { [name in 'temperature' | (typeof passed)[number]]?: unknown }

/** The settings of a run's model calls. */
export function modelSettings(
	body: Sampling,
	...limits: (number | null | undefined)[]
): NonNullable<RunInputs['model']> {
	const { temperature } = body
	const given = passed.filter((name) => (body[name] ?? null) !== null)
	const max_tokens = Math.min(...limits.map((limit) => limit ?? Infinity))
	return {
		...(typeof temperature === 'number' && { temperature }),
		...(max_tokens < Infinity && { max_tokens }),
		...(given.length > 0 && { sampling: Object.fromEntries(given.map((name) => [name, body[name]])) }),
	}
}

/** An unsupported field. Accepts null and the `harmless` values, which have no effect on the answer. */
export function refused(why: string, harmless: readonly unknown[] = []): Schema {
	return Joi.any()
		.custom(only([null, ...harmless], why))
		.description(`Not supported${harmless.length > 0 ? `, except ${JSON.stringify(harmless[0])}` : ''}.`)
}

function only(values: readonly unknown[], why: string): CustomValidator<unknown> {
	const accepted = new Set(values.map((value) => JSON.stringify(value)))
	return (value, helpers) =>
		accepted.has(JSON.stringify(value)) ? value : helpers.message({ custom: '{#label} {#why}' }, { why })
}
