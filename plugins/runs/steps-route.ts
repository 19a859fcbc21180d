import type { Server } from '@hapi/hapi'
import Joi from 'joi'
import type { Context } from '../../core/plugin.ts'
import { scoped } from '../../core/http/routes.ts'
import type { Cursor, EventEnvelope } from '../../core/store/ports.ts'
import type { Runs } from './contract.ts'
import { stepsIn } from './steps.ts'

const PAGE = 500

const timed = {
	started_at: Joi.string().isoDate().required(),
	ended_at: Joi.string().isoDate().allow(null).required().description('Null if it has not ended, or was interrupted.'),
	duration_ms: Joi.number().allow(null).required(),
	error: Joi.string().allow(null).required().description('The code of its error; null if it has none.'),
}
const modelStep = Joi.object({
	kind: Joi.valid('model').required(),
	provider: Joi.string().required(),
	model: Joi.string().required(),
	...timed,
	attempts: Joi.number().integer().required().description('Requests to a model, including retries and continuations.'),
	finish_reason: Joi.string().allow(null).required().description('Why the model stopped.'),
	usage: Joi.object({
		input_tokens: Joi.number().required(),
		output_tokens: Joi.number().required(),
		cached_tokens: Joi.number().description("Of the input: read from the provider's cache."),
		reasoning_tokens: Joi.number().description('Of the output: reasoning.'),
	})
		.allow(null)
		.required(),
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
				provider: 'openai',
				model: 'gpt-4o-mini',
				started_at: '2026-11-02T09:30:00.012Z',
				ended_at: '2026-11-02T09:30:01.412Z',
				duration_ms: 1400,
				attempts: 1,
				finish_reason: 'tool_calls',
				usage: { input_tokens: 1840, output_tokens: 31, cached_tokens: 1536 },
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

export function stepsRoute(server: Server, { events }: Pick<Context, 'events'>, runs: Runs): void {
	server.route<{ Params: { run_id: string } }>({
		method: 'GET',
		path: '/v1/runs/{run_id}/steps',
		options: {
			id: 'listSteps',
			description: 'List the model calls and tool calls of a run',
			notes: 'Read from the events of the run, so available until those expire (`events.retention_days`).',
			tags: ['api', 'runs'],
			auth: scoped('agents:read'),
			validate: {
				params: Joi.object({
					run_id: Joi.string()
						.max(64)
						.required()
						.description('Id of the run.')
						.example('0197a4c2-5d1e-7c3a-9b6f-2f1d8e4a7c05'),
				}),
			},
			response: { status: { 200: steps } },
		},
		handler: async (request) => {
			const { run_id } = await runs.get(request.params.run_id)
			return { run_id, steps: await stepsIn(eventsOf(events, run_id)) }
		},
	})
}

async function* eventsOf({ read }: Context['events'], run_id: string): AsyncGenerator<EventEnvelope> {
	let after: Cursor | null = null
	do {
		const page = await read({ run_id }, after, PAGE)
		for (const { event } of page.entries) yield event
		after = page.next
	} while (after !== null)
}
