/** Chat completions in OpenAI's format. */
import { Joi } from '../../core/util/lazy-joi.ts'
import { bodyOf } from './errors.ts'
import type { AgentAnswer } from './exchange.ts'
import { hexOf } from './ids.ts'
import type { StreamFormat } from './serve.ts'

export const completion = Joi.object({
	id: Joi.string().required(),
	object: Joi.valid('chat.completion').required(),
	created: Joi.number().integer().required().description('Seconds since 1970.'),
	model: Joi.string().required(),
	choices: Joi.array()
		.items(
			Joi.object({
				index: Joi.valid(0).required(),
				message: Joi.object({
					role: Joi.valid('assistant').required(),
					content: Joi.string().allow('', null).required(),
					refusal: Joi.valid(null).required(),
					tool_calls: Joi.array().items(
						Joi.object({
							id: Joi.string().required(),
							type: Joi.valid('function').required(),
							function: Joi.object({
								name: Joi.string().required(),
								arguments: Joi.string().allow('').required(),
							}).required(),
						}),
					),
				}).required(),
				logprobs: Joi.valid(null).required(),
				finish_reason: Joi.valid('stop', 'length', 'tool_calls', 'content_filter').required(),
			}),
		)
		.length(1)
		.required(),
	usage: Joi.object({
		prompt_tokens: Joi.number().integer().required(),
		completion_tokens: Joi.number().integer().required(),
		total_tokens: Joi.number().integer().required(),
		prompt_tokens_details: Joi.object({ cached_tokens: Joi.number().integer().required() }).description(
			"Tokens read from the provider's cache. Absent: none, or unknown.",
		),
		completion_tokens_details: Joi.object({ reasoning_tokens: Joi.number().integer().required() }).description(
			'Tokens of reasoning. Absent: none, or unknown.',
		),
	})
		.required()
		.description('Of all model calls of this request.'),
})
	.id('OpenAiChatCompletion')
	.example({
		id: 'chatcmpl-0197a4c25d1e7c3a9b6f2f1d8e4a7c05',
		object: 'chat.completion',
		created: 1_795_000_000,
		model: 'svc/ada',
		choices: [
			{
				index: 0,
				message: { role: 'assistant', content: 'I can look after your books.', refusal: null },
				logprobs: null,
				finish_reason: 'stop',
			},
		],
		usage: { prompt_tokens: 212, completion_tokens: 8, total_tokens: 220 },
	})
/** A short stream, as an example. */
export const chunks = Joi.string().example(
	'data: {"id":"chatcmpl-0197a4c25d1e7c3a9b6f2f1d8e4a7c05","object":"chat.completion.chunk","created":1795000000,"model":"svc/ada","choices":[{"index":0,"delta":{"content":"I can"},"logprobs":null,"finish_reason":null}]}\n\ndata: [DONE]\n\n',
)

export function completionOf(run_id: string, model: string, answer: AgentAnswer): object {
	const { text, tool_calls, finish_reason } = answer
	const message = {
		role: 'assistant',
		content: text === '' && tool_calls.length > 0 ? null : text,
		refusal: null,
		...(tool_calls.length > 0 && { tool_calls: callsOf(answer) }),
	}
	return {
		...headOf(run_id, model),
		object: 'chat.completion',
		choices: [{ index: 0, message, logprobs: null, finish_reason }],
		usage: usageOf(answer),
	}
}

/** The chunks of a stream, from the role to `[DONE]`. */
export function chunksOf(model: string, includeUsage: boolean): StreamFormat {
	let head: object | undefined
	const frame = (fields: object): string =>
		`data: ${JSON.stringify({ ...head, object: 'chat.completion.chunk', ...fields })}\n\n`
	const part = (delta: object, finish_reason: string | null = null): string =>
		frame({ choices: [{ index: 0, delta, logprobs: null, finish_reason }], ...(includeUsage && { usage: null }) })
	return {
		begin(run_id) {
			head = headOf(run_id, model)
			return part({ role: 'assistant', content: '', refusal: null })
		},
		piece: (content) => part({ content }),
		end(answer) {
			const calls = callsOf(answer).map((call, index) => part({ tool_calls: [{ index, ...call }] }))
			const usage = includeUsage ? frame({ choices: [], usage: usageOf(answer) }) : ''
			return `${calls.join('')}${part({}, answer.finish_reason)}${usage}data: [DONE]\n\n`
		},
		failed: (fault) => `data: ${JSON.stringify(bodyOf(fault))}\n\n`,
	}
}

/** The fields that all chunks of one answer share. */
function headOf(run_id: string, model: string): object {
	return { id: `chatcmpl-${hexOf(run_id)}`, created: Math.floor(Date.now() / 1000), model }
}

function callsOf({ tool_calls }: AgentAnswer): { id: string; type: 'function'; function: object }[] {
	return tool_calls.map(({ id, name, arguments: args }) => ({
		id,
		type: 'function',
		function: { name, arguments: args },
	}))
}

function usageOf({ usage }: AgentAnswer): object {
	const { input_tokens, output_tokens, cached_tokens, reasoning_tokens } = usage
	return {
		prompt_tokens: input_tokens,
		completion_tokens: output_tokens,
		total_tokens: input_tokens + output_tokens,
		...(cached_tokens !== undefined && { prompt_tokens_details: { cached_tokens } }),
		...(reasoning_tokens !== undefined && { completion_tokens_details: { reasoning_tokens } }),
	}
}
