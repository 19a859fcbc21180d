/** Runs as clients see them. */
import { excerpt } from '../../core/util/excerpt.ts'
import { Joi } from '../../core/util/lazy-joi.ts'
import type { OpenQuestion, RunRecord } from '../runs/contract.ts'

const iso = Joi.string().isoDate()
const text = Joi.string().allow('')
const statuses = ['queued', 'started', 'paused', 'completed', 'failed', 'stopped'] as const
/** Limit of characters of a prompt, and of an answer in a list of runs. */
const EXCERPT = 500

export const status = Joi.valid(...statuses)
/** Allows unknown fields, since clients refuse results that do not match the schema that they know. */
export const run = Joi.object({
	run_id: Joi.string().required(),
	agent: Joi.string().required(),
	conversation: Joi.string()
		.required()
		.description('Runs of one conversation execute one after another and see the earlier ones.'),
	status: status.required().description('queued, started and paused runs have not ended.'),
	trigger: Joi.string().required().description('The cause of the run; mcp: a client of this server.'),
	prompt: text.required().description('Its beginning, if it is long.'),
	answer: text.allow(null).required().description('The answer of the agent, once the run is completed.'),
	question: Joi.object({
		question_id: Joi.string().required(),
		run_id: Joi.string().required().description('The run that asks: this one, or one that it waits for.'),
		question: text.required(),
		options: Joi.array().items(text),
		kind: Joi.valid('approval', 'login').description('Absent: a question of the agent.'),
		tool: Joi.string().description('The tool whose call needs approval.'),
		arguments: Joi.object().unknown().description('The arguments of the call; the answer edit {…} changes them.'),
		expires_at: iso.description('After this time, an approval counts as refused.'),
	})
		.unknown()
		.allow(null)
		.required()
		.description('The open question; the run waits for the answer (answer_question).'),
	error: Joi.object({
		code: Joi.string().required(),
		message: text.required(),
		provider_code: Joi.string().description('The error code of the provider of the model.'),
		provider_status: Joi.number().description('The HTTP status with which the provider refused the request.'),
	})
		.unknown()
		.allow(null)
		.required(),
	usage: Joi.object({
		input_tokens: Joi.number().required(),
		output_tokens: Joi.number().required(),
		cached_tokens: Joi.number().description("Of the input: read from the provider's cache."),
		reasoning_tokens: Joi.number().description('Of the output: reasoning.'),
		cost: Joi.number().description("In the operator's currency, if the models have prices."),
	})
		.unknown()
		.required(),
	created_at: iso.required(),
	ended_at: iso.allow(null).required(),
}).unknown()

/** A run, and the question that it waits for: its own, or a sub-agent's. */
export interface RunState {
	run: RunRecord
	asked: OpenQuestion | null
}

export function viewRun({ run: record, asked: question }: RunState): Record<string, unknown> {
	const { run_id, agent, conversation, status: at, trigger, answer, error, usage, created_at, ended_at } = record
	return {
		run_id,
		agent,
		conversation,
		status: at,
		trigger,
		prompt: excerpt(record.prompt, EXCERPT),
		answer,
		question,
		error,
		usage,
		created_at,
		ended_at,
	}
}

/** For a list. */
export function viewBriefly(state: RunState): Record<string, unknown> {
	const { answer } = state.run
	return { ...viewRun(state), answer: answer === null ? null : excerpt(answer, EXCERPT) }
}
