import type { Server } from '@hapi/hapi'
import type { NumberSchema } from 'joi'
import { Joi } from '../../core/util/lazy-joi.ts'
import { invalidField } from '../shared/invalid-field.ts'
import { scoped } from '../shared/scopes.ts'
import type { Context } from '../../core/plugin.ts'
import type { UsageBy, UsageService, UsageSettings } from './contract.ts'
import { dayOf } from './days.ts'

/** Days of a report by default. */
const DAYS = 30

const counted = {
	calls: Joi.number().integer().required().description('Answers of models, also empty and continued ones.'),
	input_tokens: Joi.number().required(),
	output_tokens: Joi.number().required(),
	cached_tokens: Joi.number().required().description("Of the input: read from the provider's cache."),
	reasoning_tokens: Joi.number().required().description('Of the output: reasoning.'),
	cost: Joi.number()
		.allow(null)
		.required()
		.description('Of the calls whose model had a price, in the currency of the prices; null if none had.'),
	unpriced_tokens: Joi.number()
		.required()
		.description('Input and output of calls whose model had no price: `cost` does not include them.'),
}
const seconds = (share: string): NumberSchema =>
	Joi.number()
		.allow(null)
		.required()
		.description(
			`Estimated seconds within which ${share} of the runs ended, without the time that they waited for people; null without runs.`,
		)
const runs = Joi.object({
	completed: Joi.number().integer().required(),
	failed: Joi.number().integer().required(),
	p50_s: seconds('half'),
	p95_s: seconds('95 %'),
}).description('Runs that ended by themselves.')
const aDay = Joi.string().example('2026-11-02')
const aTime = Joi.date().iso()
const row = Joi.object({
	agent_id: Joi.string().description('With `by=agent`.'),
	provider: Joi.string().description('With `by=model`.'),
	model: Joi.string().description('With `by=model`.'),
	day: aDay.description('With `by=day`.'),
	...counted,
	runs: runs.description('Runs that ended by themselves; absent with `by=model`.'),
}).id('UsageRow')
const example = {
	calls: 12,
	input_tokens: 48_211,
	output_tokens: 2_904,
	cached_tokens: 30_208,
	reasoning_tokens: 640,
	cost: 0.01034,
	unpriced_tokens: 0,
	runs: { completed: 5, failed: 1, p50_s: 3.1, p95_s: 9.4 },
}
const report = Joi.object({
	since: aDay.required().description('The first day.'),
	until: aDay.required().description('The day after the last one.'),
	by: Joi.valid('agent', 'model', 'day').required(),
	rows: Joi.array()
		.items(row)
		.required()
		.description('Days in order; agents and models by cost and tokens, the largest first. At most 1,000.'),
	total: Joi.object({ ...counted, runs: runs.required() })
		.required()
		.id('UsageTotal')
		.description('The sum of all rows, including those beyond 1,000.'),
})
	.id('UsageReport')
	.example({
		since: '2026-11-01',
		until: '2026-11-03',
		by: 'agent',
		rows: [{ agent_id: 'ada', ...example }],
		total: example,
	})

interface Query {
	agent_id?: string
	since?: Date
	until?: Date
	by: UsageBy
}

export function routes(server: Server, _ctx: Context<UsageSettings>, usage: UsageService): void {
	server.route<{ Query: Query }>({
		method: 'GET',
		path: '/v1/usage',
		options: {
			id: 'getUsage',
			description: 'Runs, tokens and cost, by agent, model or day',
			notes:
				'Counted by whole days, which begin and end at midnight UTC, and kept for `usage.retention_days`, even after the agent was deleted. A call counts for the day on which its answer was stored, at the price of that time.',
			tags: ['api', 'usage'],
			auth: scoped('agents:read'),
			plugins: { auth: { agents: 'checked' } },
			validate: {
				query: Joi.object({
					agent_id: Joi.string()
						.max(64)
						.description('Only this agent, including deleted agents of that name.')
						.example('ada'),
					since: aTime.description('The UTC day of this time is the first one; default: the last 30 days.'),
					until: aTime.description(
						'The end, exclusive. Its UTC day is included, unless the time is midnight; default: now.',
					),
					by: Joi.valid('agent', 'model', 'day').default('agent').description('What one row is.'),
				}),
			},
			response: { status: { 200: report } },
		},
		handler: async ({ auth, query: { agent_id, by, ...times } }) =>
			usage.report({ ...(agent_id !== undefined && { agent_id }), ...daysOf(times), by }, auth.credentials),
	})
}

/** Whole days: the first one, and the one after the last. */
function daysOf({ since, until }: Pick<Query, 'since' | 'until'>): { since: string; until: string } {
	for (const [path, time] of Object.entries({ since, until })) {
		const year = time?.getUTCFullYear() ?? 2000
		if (year < 2000 || year > 2999) throw invalidField(path, `${path} must be in the years from 2000 to 2999`)
	}
	if (since && until && since > until) throw invalidField('until', 'until must not be before since')
	const last = dayOf(until ? until.getTime() - 1 : Date.now())
	return {
		since: since ? dayOf(since.getTime()) : dayOf(Date.parse(last), 1 - DAYS),
		until: dayOf(Date.parse(last), 1),
	}
}
