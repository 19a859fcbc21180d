import type { ObjectSchema, Root } from 'joi'

/** Settings of model calls, for a provider and for an agent. */
export function modelParams(joi: Root): ObjectSchema {
	return joi.object({
		temperature: joi.number().min(0).max(2).description('Randomness, 0 to 2.'),
		top_p: joi.number().min(0).max(1).description('Share of the likeliest tokens to choose from, 0 to 1.'),
		max_tokens: joi.number().integer().min(1).description('Tokens of one answer, its reasoning included.'),
		reasoning_effort: joi
			.string()
			.valid('none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max')
			.description('How long the model may reason: none, minimal, low, medium, high, xhigh or max.'),
		parallel_tool_calls: joi.boolean().description('false: at most one tool call in an answer.'),
		stop: joi
			.alternatives(joi.string().max(256), joi.array().items(joi.string().max(256)).max(4))
			.description('Text, or up to 4 of them, before which an answer ends.'),
		seed: joi.number().integer().description('The same seed gives similar answers, where the provider can.'),
	})
}
