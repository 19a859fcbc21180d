import { Fault } from '../../core/errors.ts'
import { answered } from '../../core/http/server.ts'
import { once } from '../shared/once.ts'
import { definePlugin } from '../../core/plugin.ts'
import type { Metrics } from './contract.ts'
import { countEvents } from './counts.ts'
import { expose } from './exposition.ts'
import { contributed } from './contributed.ts'
import { gatewayMetrics } from './readings.ts'
import { countRequests } from './requests.ts'
import { routes } from './routes.ts'

/** The gateway's activity as metrics for Prometheus. Expensive collection begins with the first scrape. */
export default definePlugin<unknown, Metrics>({
	name: 'metrics',
	needs: ['auth'],
	start(ctx): Metrics {
		const requests = countRequests()
		const events = countEvents(async (run_id) => ctx.use('runs').get(run_id))
		ctx.defer(
			ctx.events.subscribe({}, ({ event }) => events.handle(event)),
			'listener of events',
		)
		const ofPlugins = contributed(ctx)
		const watching = once(async () => {
			const { watchProcess } = await import('./process.ts')
			if (ctx.signal.aborted) throw new Fault('unavailable', 'the metrics are being restarted; try again')
			return ctx.own(watchProcess(), 'watch of the process')
		})
		return {
			count: requests.count,
			async scrape(accept) {
				const process = await watching()
				const own = [...gatewayMetrics(ctx), ...events.metrics, ...requests.metrics, ...process.metrics()]
				const names = new Set(own.map(({ name }) => name))
				const metrics = [...own, ...(await ofPlugins()).filter(({ name }) => !names.has(name))]
				return expose(metrics, accept)
			},
		}
	},
	guard(server, ctx) {
		server.events.on('response', (request) => ctx.find('metrics')?.count(answered(request)))
	},
	http: (server, _ctx, metrics) => routes(server, metrics),
})
