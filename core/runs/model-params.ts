import type { ObjectSchema, Root } from 'joi'

/** Settings of model calls, for a provider and for an agent. */
export function modelParams(joi: Root): ObjectSchema {
	return joi.object({
		temperature: joi.number().min(0).max(2).description('Randomness, from 0 to 2.'),
		top_p: joi.number().min(0).max(1).description('Nucleus sampling: the share of probability to sample from, 0 to 1.'),
		max_tokens: joi.number().integer().min(1).description('Maximum tokens of one answer, reasoning included.'),
		reasoning_effort: joi
			.string()
			.valid('none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max')
			.description('How much the model may reason: none, minimal, low, medium, high, xhigh or max.'),
		parallel_tool_calls: joi.boolean().description('false: at most one tool call in an answer.'),
		stop: joi
			.alternatives(joi.string().max(256), joi.array().items(joi.string().max(256)).max(4))
			.description('Text, or list of up to 4 texts; the answer ends before any of them.'),
		seed: joi.number().integer().description('The same seed gives similar answers, if the provider supports it.'),
	})
}
