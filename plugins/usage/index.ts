import { definePlugin } from '../../core/plugin.ts'
import type {} from '../agents/contract.ts'
import { accountsOf } from './accounts.ts'
import type { UsageService, UsageSettings } from './contract.ts'
import { dayOf, today } from './days.ts'
import { forgetDays, keepUsage } from './ledger.ts'
import { reportOf } from './report.ts'
import { routes } from './routes.ts'

const HOUR_MS = 3_600_000

/** Usage: tokens and cost of model calls, by agent, day and model, and their daily limits. */
export default definePlugin<UsageSettings, UsageService>({
	name: 'usage',
	needs: ['auth', 'agents'],
	start(ctx) {
		const { store, config } = ctx
		ctx.every(HOUR_MS, async () => {
			await forgetDays(store, ctx.use('agents').list(), dayOf(Date.now(), 1 - config.retention_days), 'usage')
			// Only the records of today are ever read.
			await forgetDays(store, ctx.use('agents').list(), today(), 'caller-usage')
		})
		return {
			...accountsOf(ctx),
			async keep(agent) {
				await keepUsage(store, agent, 'usage')
				await keepUsage(store, agent, 'caller-usage')
			},
			report: (query, caller) => reportOf(ctx, query, caller),
		}
	},
	http: routes,
})
