/** Responses in OpenAI's format. */
import { Joi } from '../../core/util/lazy-joi.ts'
import type { ToolCallRequest } from '../../core/protocol.ts'
import { failureCode } from './errors.ts'
import type { AgentAnswer } from './exchange.ts'
import type { StoredResponse } from './stored.ts'

const outputText = Joi.object({
	type: Joi.valid('output_text').required(),
	text: Joi.string().allow('').required(),
	annotations: Joi.array().length(0).required(),
	logprobs: Joi.array().length(0).required(),
})
const item = Joi.object({
	type: Joi.valid('message', 'function_call').required(),
	id: Joi.string().required(),
	status: Joi.valid('completed', 'incomplete').required(),
	role: Joi.valid('assistant').description('Of a message.'),
	content: Joi.array().items(outputText).description('Of a message.'),
	call_id: Joi.string().description('Of a function call.'),
	name: Joi.string().description('Of a function call.'),
	arguments: Joi.string().allow('').description('Of a function call: JSON.'),
}).id('OpenAiOutputItem')
const count = Joi.number().integer().required()

export const response = Joi.object({
	id: Joi.string().required(),
	object: Joi.valid('response').required(),
	created_at: Joi.number().integer().required().description('Seconds since 1970.'),
	completed_at: Joi.number().integer().allow(null).required(),
	status: Joi.valid('in_progress', 'completed', 'incomplete', 'failed', 'cancelled').required(),
	background: Joi.valid(false).required(),
	error: Joi.object({ code: Joi.string().required(), message: Joi.string().allow('').required() })
		.allow(null)
		.required(),
	incomplete_details: Joi.object({ reason: Joi.valid('max_output_tokens', 'content_filter').required() })
		.allow(null)
		.required(),
	model: Joi.string().required(),
	output: Joi.array().items(item).required(),
	previous_response_id: Joi.string().allow(null).required(),
	usage: Joi.object({
		input_tokens: count,
		input_tokens_details: Joi.object({ cached_tokens: count }).required(),
		output_tokens: count,
		output_tokens_details: Joi.object({ reasoning_tokens: count }).required(),
		total_tokens: count,
	})
		.allow(null)
		.required()
		.description('Of all model calls of this request.'),
})
	.unknown()
	.description('Also contains the settings of the request.')
	.id('OpenAiResponse')
	.example({
		id: 'resp_0197a4c25d1e7c3a9b6f2f1d8e4a7c05',
		object: 'response',
		created_at: 1_795_000_000,
		completed_at: 1_795_000_002,
		status: 'completed',
		background: false,
		error: null,
		incomplete_details: null,
		model: 'svc/ada',
		output: [
			{
				type: 'message',
				id: 'msg_0197a4c25d1e7c3a9b6f2f1d8e4a7c05',
				status: 'completed',
				role: 'assistant',
				content: [{ type: 'output_text', text: 'I can look after your books.', annotations: [], logprobs: [] }],
			},
		],
		previous_response_id: null,
		usage: {
			input_tokens: 212,
			input_tokens_details: { cached_tokens: 0 },
			output_tokens: 8,
			output_tokens_details: { reasoning_tokens: 0 },
			total_tokens: 220,
		},
	})
/** A short stream, as an example. */
export const responseEvents = Joi.string().example(
	'event: response.output_text.delta\ndata: {"type":"response.output_text.delta","item_id":"msg_0197a4c25d1e7c3a9b6f2f1d8e4a7c05","output_index":0,"content_index":0,"delta":"I can","sequence_number":4}\n\n',
)

/** The response in its current state. */
export function viewOf({ id, created_at, previous_response_id, echo, end }: StoredResponse): Record<string, unknown> {
	const answer = end && 'answer' in end ? end.answer : undefined
	const failure = end && 'error' in end ? end.error : null
	const isCancelled = failure?.code === 'stopped'
	const error = isCancelled ? null : failure
	const reason = answer && incomplete[answer.finish_reason]
	const status = !end
		? 'in_progress'
		: isCancelled
			? 'cancelled'
			: error
				? 'failed'
				: reason === undefined
					? 'completed'
					: 'incomplete'
	return {
		id,
		object: 'response',
		created_at,
		completed_at: status === 'completed' ? (end?.at ?? null) : null,
		status,
		background: false,
		error: error && { code: failureCode(error), message: error.message },
		incomplete_details: reason === undefined ? null : { reason },
		...echo,
		output: answer ? outputOf(id, answer) : [],
		previous_response_id,
		usage: answer ? usageOf(answer) : null,
	}
}

/** The output items: a message, unless there is no text but calls, then the calls. */
export function outputOf(id: string, answer: AgentAnswer): Record<string, unknown>[] {
	const { text, tool_calls, finish_reason } = answer
	const message = messageItem(id, text, incomplete[finish_reason] === undefined ? 'completed' : 'incomplete')
	const calls = tool_calls.map((call, at) => callItem(id, call, at))
	return text === '' && calls.length > 0 ? calls : [message, ...calls]
}

/** `text`: null before the first piece of a stream. */
export function messageItem(id: string, text: string | null, status: string): Record<string, unknown> {
	const content = text === null ? [] : [textPart(text)]
	return { type: 'message', id: `msg_${ownPart(id)}`, status, role: 'assistant', content }
}

export function textPart(text: string): Record<string, unknown> {
	return { type: 'output_text', text, annotations: [], logprobs: [] }
}

function callItem(id: string, call: ToolCallRequest, at: number): Record<string, unknown> {
	const { id: call_id, name, arguments: args } = call
	return { type: 'function_call', id: `fc_${ownPart(id)}${at}`, status: 'completed', call_id, name, arguments: args }
}

const incomplete: Partial<Record<AgentAnswer['finish_reason'], string>> = {
	length: 'max_output_tokens',
	content_filter: 'content_filter',
}

/** The id without the part that identifies the agent. */
function ownPart(id: string): string {
	return id.slice(-32)
}

function usageOf({ usage }: AgentAnswer): object {
	const { input_tokens, output_tokens, cached_tokens = 0, reasoning_tokens = 0 } = usage
	return {
		input_tokens,
		input_tokens_details: { cached_tokens },
		output_tokens,
		output_tokens_details: { reasoning_tokens },
		total_tokens: input_tokens + output_tokens,
	}
}
