import type { CustomHelpers, ErrorReport, Schema } from 'joi'
import { Joi } from '../../core/util/lazy-joi.ts'
import { modelParams } from '../../sandbox/order.ts'

function timeZone(name: string, helpers: CustomHelpers<string>): string | ErrorReport {
	try {
		new Intl.DateTimeFormat('en', { timeZone: name })
		return name
	} catch {
		return helpers.message({ custom: '{#label} must be the name of a time zone, such as Europe/Berlin' })
	}
}

const patterns = Joi.array()
	.items(Joi.string().min(1).max(200))
	.max(100)
	.example(['memory.store', 'mcp__files__*', 'skill:business-days'])

const orNull = (schema: Schema): Schema => schema.allow(null)
export const configKeys = {
	model: Joi.string().min(1).max(200).description("The model's name at the provider."),
	provider: Joi.string().min(1).max(64).description('A name under providers in gateway.yaml.'),
	temperature: Joi.number().min(0).max(2),
	max_tokens: Joi.number().integer().min(1).description('Output tokens of one model call.'),
	fallback: Joi.array()
		.items(Joi.string().min(1).max(64))
		.max(8)
		.description('Providers to try, in order, when the first fails.'),
	timezone: Joi.string()
		.max(64)
		.custom(timeZone)
		.description("Time zone of the time that the model gets, such as Europe/Berlin; default: the machine's."),
	context: Joi.object({
		tokens: Joi.number()
			.integer()
			.min(2_000)
			.max(10_000_000)
			.description("Maximum tokens of one request, if the model's context window is larger; default 100,000."),
		summary: Joi.boolean().description(
			'Whether the model summarizes turns before they are omitted; default true. If false, it gets a list of their beginnings.',
		),
		facts: Joi.boolean().description(
			'Whether facts of these turns are stored in long-term memory; default true, except in conversations of webhooks and of the OpenAI-compatible API. Requires `summary`.',
		),
	}).description('How much of a conversation the model gets with a request; it can search and read the rest.'),
	preamble: Joi.boolean().description(
		'Whether the model gets the preamble in addition to the persona: its name, the time, the place, and how secrets, skills and memory work; default true.',
	),
	memory: Joi.object({
		recall: Joi.boolean().description(
			'Whether the model automatically gets the memories that match a prompt; default true.',
		),
	}).description('Long-term memory.'),
	tools: Joi.object({
		allow: patterns.description('Tools that are called without approval.'),
		deny: patterns.description('Tools that are neither offered to the model nor called.'),
		ask: patterns.description('Tools whose calls wait for approval by a person.'),
	}).description(
		'Which tools the agent may use. `deny` takes precedence over `ask`, and `ask` over `allow`; the pattern `*` alone means the tools that no other pattern names. Tools that no pattern matches are allowed, except tools of MCP servers that declare themselves destructive, which need approval.',
	),
	params: modelParams(Joi).description('Settings of model calls; they replace those of the provider.'),
	context_window: Joi.number()
		.integer()
		.min(1024)
		.max(100_000_000)
		.description("The model's context window in tokens, answer included; replaces that of the provider."),
	limits: Joi.object({
		steps: Joi.number().integer().min(1).max(1_000).description('Model calls of one run.'),
		tokens: Joi.number().integer().min(1).description('Tokens of one run.'),
		wall_time_s: Joi.number().min(1).max(86_400).description('Seconds that one run may be active.'),
		result_characters: Joi.number()
			.integer()
			.min(1024)
			.max(1_048_576)
			.description("Characters of one tool's result that the model sees; it can read the rest."),
		tokens_per_day: Joi.number()
			.integer()
			.min(1)
			.description('Tokens of all model calls per day (UTC). Default: only the limit for all agents together.'),
		cost_per_day: Joi.number()
			.positive()
			.max(1e9)
			.description(
				'Cost of all model calls per day (UTC), in the currency of the prices. Default as for tokens_per_day.',
			),
	}),
}
/** A command, not a setting: the active skills are the agent's `skills`. */
const approvedSkills = Joi.array()
	.items(Joi.string().min(1).max(64))
	.max(32)
	.description('Ids of skills to approve now; not stored in the config.')
export const config = Joi.object({ ...configKeys, approved_skills: approvedSkills })
	.unknown()
	.description('Model and limits; further keys are kept.')
/** A key set to null is removed from the config. */
export const configChange = Joi.object({
	...Object.fromEntries(Object.entries(configKeys).map(([key, schema]) => [key, orNull(schema)])),
	approved_skills: orNull(approvedSkills),
})
	.unknown()
	.description('Keys to change; a key set to null is removed, others stay.')
