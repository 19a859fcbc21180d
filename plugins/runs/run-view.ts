/** Runs, their messages and attachments in the API: schemas and views. */
import { Joi } from '../../core/util/lazy-joi.ts'
import type { OpenQuestion, RunRecord } from './contract.ts'

export function view(record: RunRecord, open_question: OpenQuestion | null) {
	const { attachments, files } = record
	return {
		run_id: record.run_id,
		agent: record.agent,
		status: record.status,
		trigger: record.trigger,
		conversation: record.conversation,
		prompt: record.prompt,
		...(attachments && { attachments }),
		answer: record.answer,
		...(files && { files }),
		created_at: record.created_at,
		started_at: record.started_at,
		ended_at: record.ended_at,
		usage: record.usage,
		finish_reason: record.finish_reason ?? null,
		error: record.error,
		question: record.question,
		open_question,
		waits_for: record.waits_for ?? null,
		parent_run_id: record.parent?.run_id ?? null,
		request_id: record.request_id ?? null,
	}
}

const iso = Joi.string().isoDate()
const blob = Joi.string()
	.pattern(/^sha256:[0-9a-f]{64}$/, 'sha256: and 64 hexadecimal digits')
	.description('An uploaded blob, or one of an earlier message.')
	.example('sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08')

const attachment = Joi.object({
	type: Joi.valid('image', 'file', 'audio').required(),
	blob: blob.required().description('Its bytes are at GET /v1/agents/{name}/blobs/{digest}.'),
	media_type: Joi.string().required(),
	size: Joi.number().integer().required().description('Bytes.'),
	name: Joi.string(),
	seconds: Joi.number().integer().description('Length of a recording.'),
	transcript: Joi.string()
		.allow('', null)
		.description('What is said in a recording; null if it could not be transcribed.'),
}).id('Attachment')

export const attachmentsGiven = Joi.array()
	.items(
		Joi.object({
			blob,
			data: Joi.string().description('The bytes as base64, or a data: URL.'),
			url: Joi.string()
				.max(8192)
				.description('An http or https address at a public address, from which the gateway fetches the bytes.'),
			name: Joi.string().max(1000).description('Name of the file, for the model.'),
			media_type: Joi.string().max(200).description('Used only if the type cannot be detected from the bytes.'),
		})
			.xor('blob', 'data', 'url')
			.id('NewAttachment'),
	)
	.max(32)
	.description('Images, files and recordings for the model. Give exactly one of blob, data and url for each.')

export const statuses = ['queued', 'started', 'paused', 'completed', 'failed', 'stopped'] as const
export const aRun = Joi.string().required().example('0197a4c2-5d1e-7c3a-9b6f-2f1d8e4a7c05')
export const runId = aRun.max(64).description('Id of the run.')
export const aQuestion = Joi.string().required().example('0197a4c2-6827-7598-93dd-18495a6b7c8d')
export const asked = {
	question_id: aQuestion,
	question: Joi.string().required().example('May I order the book again?'),
	options: Joi.array().items(Joi.string()).example(['yes', 'no']),
	kind: Joi.valid('approval', 'login').description(
		'`approval`: a tool call waits for approval; `login`: it waits until an operator has signed in. Absent: a question of the agent.',
	),
	tool: Joi.string().description('Of an approval: the tool, such as `memory.store`.'),
	arguments: Joi.object().unknown().description('Of an approval: the complete arguments of the call.'),
	expires_at: iso.description('Of an approval: when it counts as refused.'),
}
/** Actions without parameters accept no body, or an empty object. */
export const emptyBody = Joi.object({}).allow(null).example({})
export const usageSchema = (cost: string) =>
	Joi.object({
		input_tokens: Joi.number().required(),
		output_tokens: Joi.number().required(),
		cached_tokens: Joi.number().description("Of the input: read from the provider's cache."),
		reasoning_tokens: Joi.number().description('Of the output: reasoning.'),
		cost: Joi.number().description(cost),
	})
export const run = Joi.object({
	run_id: Joi.string().required(),
	agent: Joi.string().required(),
	status: Joi.valid(...statuses).required(),
	trigger: Joi.string().required(),
	conversation: Joi.string().required(),
	prompt: Joi.string().allow('').required(),
	attachments: Joi.array().items(attachment).description('Attachments of the prompt; absent if there are none.'),
	answer: Joi.string().allow('', null).required(),
	files: Joi.array().items(attachment).description('Files that are sent with the answer; absent if there are none.'),
	created_at: iso.required(),
	started_at: iso.allow(null).required(),
	ended_at: iso.allow(null).required(),
	usage: usageSchema(
		'Cost of the model calls whose model had a price, in the currency of the prices; absent if none had one.',
	).required(),
	finish_reason: Joi.valid(
		'stop',
		'tool_calls',
		'length',
		'content_filter',
		'limit_steps',
		'limit_tokens',
		'limit_wall_time',
		'repeated_calls',
	)
		.allow(null)
		.required()
		.description('Why a completed run ended: why the model stopped, or the limit that led to its last call.'),
	error: Joi.object({
		code: Joi.string().required(),
		message: Joi.string().allow('').required(),
		provider_code: Joi.string().description('The code that the provider of the model gave.'),
		provider_status: Joi.number().description('The HTTP status with which the provider refused the request.'),
	})
		.allow(null)
		.required(),
	question: Joi.object(asked).allow(null).required().description('Its own open question, if it is paused for one.'),
	open_question: Joi.object({ ...asked, run_id: aRun.description('The run that asks.') })
		.allow(null)
		.required()
		.description('The open question that it waits for: its own, or that of a sub-agent that it waits for.'),
	waits_for: Joi.string().allow(null).required().description('The run whose end it waits for while paused.'),
	parent_run_id: Joi.string().allow(null).required().description('The run that started it as a sub-agent.'),
	request_id: Joi.string()
		.allow(null)
		.required()
		.description('The request that started it: the X-Request-Id of its answer, and of its lines in the log.'),
})
	.id('Run')
	.example({
		run_id: '0197a4c2-5d1e-7c3a-9b6f-2f1d8e4a7c05',
		agent: 'ada',
		status: 'completed',
		trigger: 'api',
		conversation: '0197a4c2-6938-7609-84ee-295a6b7c8d9e',
		prompt: 'Which books are due today?',
		answer: 'Three books are due today.',
		created_at: '2026-11-02T09:30:00.000Z',
		started_at: '2026-11-02T09:30:00.012Z',
		ended_at: '2026-11-02T09:30:04.250Z',
		usage: { input_tokens: 212, output_tokens: 8, cost: 0.0000366 },
		finish_reason: 'stop',
		error: null,
		question: null,
		open_question: null,
		waits_for: null,
		parent_run_id: null,
		request_id: '0197a4c2-5d1b-7a11-8c4d-5e6f7a8b9c0d',
	})
export const message = Joi.object({
	role: Joi.valid('user', 'assistant').required(),
	content: Joi.string().allow('').required().example('Which books are due today?'),
	attachments: Joi.array().items(attachment).description('What came with it; absent if nothing did.'),
	timestamp: iso.required(),
}).id('Message')
