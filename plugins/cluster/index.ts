import { definePlugin } from '../../core/plugin.ts'
import type {} from '../metrics/contract.ts'
import type { ClusterSettings } from './contract.ts'
import { routes } from './routes.ts'

/**
 * Several gateways on one cluster. The engine itself (engine.ts) is opened before plugins start; this plugin shows the state of the
 * cluster.
 */
export default definePlugin<ClusterSettings>({
	name: 'cluster',
	needs: ['auth'],
	start(ctx) {
		ctx.extend('metrics', {
			metrics: {
				svc_forwarded_requests_total: {
					help: 'Requests that waiting gateways have forwarded to this one.',
					type: 'counter',
				},
				svc_lent_threads: { help: 'Worker threads that waiting gateways lend to this one.', type: 'gauge' },
				svc_lent_thread_runs: { help: 'Runs that execute there.', type: 'gauge' },
			},
			read() {
				const lent = ctx.gateway.lentThreads()
				return {
					svc_forwarded_requests_total: ctx.gateway.forwardedRequests() ?? undefined,
					svc_lent_threads: lent?.map(({ gateway, threads }) => ({ labels: { gateway }, value: threads })),
					svc_lent_thread_runs: lent?.map(({ gateway, runs }) => ({ labels: { gateway }, value: runs })),
				}
			},
		})
	},
	http: routes,
})
