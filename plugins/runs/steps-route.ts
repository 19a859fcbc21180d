import type { Server } from '@hapi/hapi'
import { Joi } from '../../core/util/lazy-joi.ts'
import type { Context } from '../../core/plugin.ts'
import { eventsIn } from '../shared/log-events.ts'
import { scoped } from '../shared/scopes.ts'
import type { Runs } from './contract.ts'
import { keptRequests } from './requests.ts'
import { runId, usageSchema } from './run-view.ts'
import { stepsIn } from './steps.ts'

const timed = {
	started_at: Joi.string().isoDate().required(),
	ended_at: Joi.string()
		.isoDate()
		.allow(null)
		.required()
		.description('Null if the step has not ended, or was interrupted.'),
	duration_ms: Joi.number().allow(null).required(),
	error: Joi.string().allow(null).required().description('The code of its error; null if it has none.'),
}
const modelStep = Joi.object({
	kind: Joi.valid('model').required(),
	step: Joi.number().integer().required().description('The number of the model answer in the run, from 1.'),
	provider: Joi.string().required(),
	model: Joi.string().required(),
	...timed,
	attempts: Joi.number().integer().required().description('Requests to a model, including retries and continuations.'),
	finish_reason: Joi.string().allow(null).required().description('Why the model stopped.'),
	usage: usageSchema('By the prices at the time of the call; absent if the model had none.').allow(null).required(),
}).id('ModelStep')
const toolStep = Joi.object({
	kind: Joi.valid('tool').required(),
	name: Joi.string()
		.allow('')
		.required()
		.description('Such as `memory.store`, `mcp__files__read`, `skill:business-days`.'),
	call_id: Joi.string().allow('').required(),
	parent_call_id: Joi.string()
		.allow(null)
		.required()
		.description('The skill call that made this call; null if the model made it.'),
	...timed,
}).id('ToolStep')
const steps = Joi.object({
	run_id: Joi.string().required(),
	steps: Joi.array()
		.items(modelStep, toolStep)
		.required()
		.description('In the order in which they began, at most 5,000.'),
})
	.id('RunSteps')
	.example({
		run_id: '0197a4c2-5d1e-7c3a-9b6f-2f1d8e4a7c05',
		steps: [
			{
				kind: 'model',
				step: 1,
				provider: 'openai',
				model: 'gpt-4o-mini',
				started_at: '2026-11-02T09:30:00.012Z',
				ended_at: '2026-11-02T09:30:01.412Z',
				duration_ms: 1400,
				attempts: 1,
				finish_reason: 'tool_calls',
				usage: { input_tokens: 1840, output_tokens: 31, cached_tokens: 1536, cost: 0.000164 },
				error: null,
			},
			{
				kind: 'tool',
				name: 'memory.recall',
				call_id: 'call_1',
				parent_call_id: null,
				started_at: '2026-11-02T09:30:01.414Z',
				ended_at: '2026-11-02T09:30:01.420Z',
				duration_ms: 6,
				error: null,
			},
		],
	})

const requests = Joi.object({
	run_id: Joi.string().required(),
	step: Joi.number().integer().required(),
	requests: Joi.array()
		.items(
			Joi.object({
				sent_at: Joi.string().isoDate().required(),
				provider: Joi.string().required(),
				model: Joi.string().required(),
				size: Joi.number().integer().required().description('Characters of the body as it was sent.'),
				truncated: Joi.boolean().required().description('Only the first 1,048,576 characters are kept.'),
				body: Joi.string().allow('').required().description('JSON in the API of the provider.'),
			}).id('SentRequest'),
		)
		.required()
		.description('Oldest first, with retries; as many as 8 Mi characters hold.'),
})
	.id('StepRequests')
	.example({
		run_id: '0197a4c2-5d1e-7c3a-9b6f-2f1d8e4a7c05',
		step: 1,
		requests: [
			{
				sent_at: '2026-11-02T09:30:00.013Z',
				provider: 'openai',
				model: 'gpt-4o-mini',
				size: 66,
				truncated: false,
				body: '{"model":"gpt-4o-mini","messages":[{"role":"user","content":"Hi"}]}',
			},
		],
	})

export function stepsRoute(server: Server, { events, store }: Pick<Context, 'events' | 'store'>, runs: Runs): void {
	server.route<{ Params: { run_id: string } }>({
		method: 'GET',
		path: '/v1/runs/{run_id}/steps',
		options: {
			id: 'listSteps',
			description: 'List the model calls and tool calls of a run',
			notes: 'Read from the events of the run, so available until those expire (`events.retention_days`).',
			tags: ['api', 'runs'],
			auth: scoped('agents:read'),
			plugins: { auth: { agents: 'checked' } },
			validate: { params: Joi.object({ run_id: runId }) },
			response: { status: { 200: steps } },
		},
		handler: async ({ auth, params }) => {
			const { run_id } = await runs.visibleTo(auth.credentials).get(params.run_id)
			return { run_id, steps: await stepsIn(eventsIn(events, { run_id })) }
		},
	})
	server.route<{ Params: { run_id: string; step: number } }>({
		method: 'GET',
		path: '/v1/runs/{run_id}/steps/{step}/requests',
		options: {
			id: 'listStepRequests',
			description: 'The requests for one model answer of a run, as they were sent to the provider',
			notes:
				'Kept for `runs.keep_requests` days, without secrets, headers and address; at most 64 Mi characters of one run. Empty if none is kept.',
			tags: ['api', 'runs'],
			auth: scoped('requests:read'),
			plugins: { auth: { agents: 'checked' } },
			validate: {
				params: Joi.object({
					run_id: runId,
					step: Joi.number().integer().min(1).required().description('`step` of a model call of the run.').example(1),
				}),
			},
			response: { status: { 200: requests } },
		},
		handler: async ({ auth, params: { run_id: id, step } }) => {
			const run = await runs.visibleTo(auth.credentials).get(id)
			return { run_id: run.run_id, step, requests: await keptRequests(store, run, step) }
		},
	})
}
