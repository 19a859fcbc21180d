import { definePlugin } from '../../core/plugin.ts'
import { readAudit } from './audit.ts'
import type { Events, EventSettings } from './contract.ts'
import { keepPruned, prune } from './retention.ts'
import { routes } from './routes.ts'
import { Streams } from './streams.ts'

/** Events: the live stream, the audit log, and how long events are kept. */
export default definePlugin<EventSettings>({
	name: 'events',
	needs: ['auth'],
	config: (joi) =>
		joi.object<EventSettings>({
			retention_days: joi.number().integer().min(1).max(3650).default(30),
			max_streams: joi
				.number()
				.integer()
				.min(1)
				.max(20_000)
				.default(10_000)
				.description('Event streams that may be open at the same time; the next one gets 503. Default 10000.'),
			heartbeat_s: joi
				.number()
				.integer()
				.min(1)
				.max(60)
				.default(15)
				.description('Seconds without an event after which a stream gets a comment. Default 15.'),
			stall_timeout_s: joi
				.number()
				.integer()
				.min(1)
				.max(300)
				.default(30)
				.description('Seconds for which a client may take nothing before its stream is cut. Default 30.'),
		}),
	start(ctx): Events {
		const streams = new Streams(ctx)
		ctx.defer(() => streams.close(), 'event streams')
		keepPruned(ctx)
		return {
			stream: (request) => streams.open(request),
			streams: () => streams.size,
			audit: (request) => readAudit(ctx.events, request),
			prune: () => prune(ctx),
		}
	},
	http: (server, ctx) => routes(server, ctx),
})
