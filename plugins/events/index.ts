import { definePlugin } from '../../core/plugin.ts'
import type {} from '../metrics/contract.ts'
import { readAudit } from './audit.ts'
import type { Events, EventSettings } from './contract.ts'
import { keepPruned, prune } from './retention.ts'
import { routes } from './routes.ts'
import { Streams } from './streams.ts'

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
		keepPruned(ctx)
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
