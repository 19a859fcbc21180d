import { Fault } from '../../core/errors.ts'
import { answered } from '../../core/http.ts'
import { once } from '../../core/once.ts'
import { definePlugin } from '../../core/plugin.ts'
import type {} from '../runs/contract.ts'
import type { Metrics } from './contract.ts'
import { countEvents } from './events.ts'
import { expose } from './exposition.ts'
import { openReadings } from './readings.ts'
import { countRequests } from './requests.ts'
import { routes } from './routes.ts'

/** What the gateway does, in numbers, for Prometheus. What takes time or memory begins with the first scrape. */
export default definePlugin({
	name: 'metrics',
	needs: ['auth'],
	start(ctx): Metrics {
		const requests = countRequests()
		const events = countEvents(async (run_id) => ctx.use('runs').get(run_id))
		ctx.defer(
			ctx.events.subscribe({}, ({ event }) => events.heard(event)),
			'listener of events',
		)
		const readings = openReadings(ctx)
		const watching = once(async () => {
			const { watchProcess } = await import('./process.ts')
			if (ctx.signal.aborted) throw new Fault('unavailable', 'the metrics are being restarted; ask again')
			return ctx.own(watchProcess(), 'watch of the process')
		})
		return {
			count: requests.count,
			async scrape(accept) {
				const process = await watching()
				const metrics = [...(await readings()), ...events.metrics, ...requests.metrics, ...process.metrics()]
				return expose(metrics, accept)
			},
		}
	},
	guard(server, ctx) {
		server.events.on('response', (request) => ctx.find('metrics')?.count(answered(request)))
	},
	http: (server, ctx) => routes(server, ctx),
})
