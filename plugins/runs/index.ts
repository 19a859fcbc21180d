import { definePlugin } from '../../core/plugin.ts'
import events from './events.ts'
import { runMetrics } from './census.ts'
import { claimRuns } from './claims.ts'
import type { RunSettings, Runs } from './contract.ts'
import { finishForgetting, forgetRuns } from './forget.ts'
import { maintain } from './maintenance.ts'
import { addPrimitives } from './primitives.ts'
import { addRecall } from './recall.ts'
import { addSendFile } from './send-file.ts'
import { routes } from './routes.ts'
import { requeueWithRoom } from './requeue.ts'
import { continueRunIds } from './run-ids.ts'
import { runsOf } from './runs.ts'

/** Runs: from a prompt to its answer, one conversation after another, and the questions in between. */
export default definePlugin<RunSettings, Runs>({
	name: 'runs',
	needs: ['auth', 'agents', 'attachments', 'models', 'usage'],
	events,
	scopes: {
		'runs:write': 'Start, stop, cancel and retry runs, answer questions',
		'requests:read': 'Read requests to models as they were sent (`runs.keep_requests`)',
	},
	async start(ctx) {
		addPrimitives(ctx)
		addRecall(ctx)
		addSendFile(ctx)
		await finishForgetting(ctx)
		await requeueWithRoom(ctx)
		await continueRunIds(ctx.store)
		claimRuns(ctx).catch((error: unknown) => ctx.log.fatal({ err: error }, 'no more runs are claimed from the queue'))
		maintain(ctx)
		const runs = runsOf(ctx)
		ctx.extend('agent', {
			async forget(agent) {
				await forgetRuns(ctx, runs, agent)
				await ctx.use('usage').keep(agent)
			},
		})
		ctx.extend('metrics', runMetrics(runs))
		return runs
	},
	http: routes,
})
