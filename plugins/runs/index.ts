import { definePlugin } from '../../core/plugin.ts'
import { claimRuns } from './claims.ts'
import type { RunSettings } from './contract.ts'
import { keepHouse } from './housekeeping.ts'
import { addPrimitives } from './primitives.ts'
import { routes } from './routes.ts'
import { requeue } from './requeue.ts'
import { runsOf } from './runs.ts'

/** Runs: from a prompt to its answer, one conversation after another, and the questions in between. */
export default definePlugin<RunSettings>({
	name: 'runs',
	needs: ['auth', 'agents', 'models'],
	config: (joi) =>
		joi.object<RunSettings>({
			limits: joi.object().required(),
			max_waiting: joi.number().required(),
			question_ttl_days: joi.number().required(),
			retention_days: joi.number().required(),
		}),
	async start(ctx) {
		addPrimitives(ctx)
		await requeue(ctx)
		claimRuns(ctx).catch((error: unknown) => ctx.log.fatal({ err: error }, 'no more runs are taken from the queue'))
		keepHouse(ctx)
		return runsOf(ctx)
	},
	http: (server, ctx) => routes(server, ctx),
})
