import { Joi } from '../../core/util/lazy-joi.ts'
import type { DeliverFields } from '../runs/contract.ts'

const PROMPT_LIMIT_BYTES = 100 * 1024

/** The fields of a request, for the route and for the primitive. `scheduleOf` validates the schedule. */
export const requestKeys = (deliver: DeliverFields) => ({
	cron: Joi.string()
		.min(1)
		.max(200)
		.description('Five fields: minute hour day month weekday; or six with seconds in front. At most once a minute.')
		.example('0 9 * * 1-5'),
	timezone: Joi.string()
		.min(1)
		.max(64)
		.description(
			"IANA name of the timezone of cron, or of an `at` without an offset. Default: the agent's `config.timezone`; of cron otherwise UTC.",
		)
		.example('Europe/Berlin'),
	every: Joi.string()
		.min(1)
		.max(16)
		.description('Instead of cron, an interval from now on: a number with s, m, h or d, at least one minute.')
		.example('30m'),
	at: Joi.string()
		.min(1)
		.max(64)
		.description('Instead of cron, a time at which it starts one run: ISO 8601, or such as `in 20 minutes`.')
		.example('in 20 minutes'),
	prompt: Joi.string()
		.min(1)
		.max(PROMPT_LIMIT_BYTES, 'utf8')
		.required()
		.description('The prompt of its runs, at most 100 KiB.')
		.example('Look at the news and tell me what is new.'),
	deliver: deliver.given,
})

/** The fields of a change, in which all are optional. */
export const changeKeys = (deliver: DeliverFields) => ({
	...requestKeys(deliver),
	prompt: requestKeys(deliver).prompt.optional(),
	paused: Joi.boolean().description('A paused heartbeat starts no runs.').example(true),
})
