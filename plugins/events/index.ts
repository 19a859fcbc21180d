import { definePlugin } from '../../core/plugin.ts'
import type { Context } from '../../core/plugin.ts'
import type {} from '../metrics/contract.ts'
import type {} from '../runs/contract.ts'
import { readAudit } from './audit.ts'
import type { Events, EventSettings } from './contract.ts'
import { routes } from './routes.ts'
import { Streams } from './streams.ts'

/** After more urgent work of the start. */
const FIRST_MS = 2_000
const EVERY_MS = 60 * 60 * 1000
const DAY_MS = 24 * 60 * 60 * 1000

/** Events: the live stream, the audit log, and how long events are kept. */
export default definePlugin<EventSettings, Events>({
	name: 'events',
	needs: ['auth'],
	scopes: {
		'events:read': 'Stream events, read the audit log and the metrics',
	},
	start(ctx): Events {
		const streams = new Streams(ctx)
		ctx.defer(() => streams.close(), 'event streams')
		const pruneAndLog = async (): Promise<void> => {
			const deleted = await prune(ctx)
			if (deleted > 0) ctx.log.info(`${deleted} events older than ${ctx.config.retention_days} days were deleted`)
		}
		ctx.after(FIRST_MS, pruneAndLog)
		ctx.every(EVERY_MS, pruneAndLog)
		ctx.extend('metrics', {
			metrics: { svc_sse_clients: { help: 'Open event streams.', type: 'gauge' } },
			read: () => ({ svc_sse_clients: streams.size }),
		})
		return {
			stream: (request) => streams.open(request),
			ofRun: (run_id, credentials) => streams.ofRun(run_id, credentials),
			streams: () => streams.size,
			audit: (request) => readAudit(ctx.events, request),
			prune: () => prune(ctx),
		}
	},
	http: routes,
})

/**
 * Deletes events older than the retention, except those of runs that have not ended: they are the run's journal.
 * Without a runs plugin, every run counts as running.
 */
async function prune(ctx: Context<EventSettings>): Promise<number> {
	const before = new Date(Date.now() - ctx.config.retention_days * DAY_MS).toISOString()
	return ctx.events.prune(before, async (run) => {
		const runs = ctx.find('runs')
		return runs ? runs.isActive(run) : true
	})
}
