import { messageOf } from '../../core/errors.ts'
import { definePlugin } from '../../core/plugin.ts'
import type { Context } from '../../core/plugin.ts'
import type {} from '../metrics/contract.ts'
import type {} from '../runs/contract.ts'
import { collectorOf } from './collector.ts'
import type { Collector } from './collector.ts'
import type { TracingSettings } from './contract.ts'

/** Spans of runs, model calls and tools, for OpenTelemetry. Without a collector it loads no SDK. */
export default definePlugin<TracingSettings>({
	name: 'tracing',
	// Two instances that receive the same events would trace the same runs twice.
	exclusive: true,
	async start(ctx) {
		const { sample_ratio, content } = ctx.config
		const { version } = ctx.gateway
		const collector = collectorFor(ctx)
		if (!collector) return
		const [{ openTracer }, { traceRuns }] = await Promise.all([import('./tracer.ts'), import('./runs.ts')])
		const trouble = (message: string | null): void => {
			if (ctx.signal.aborted) return // a delivery that was in progress when the plugin stopped
			ctx.trouble(message)
			if (message === null) ctx.log.info('spans are delivered again')
			else ctx.log.warn(`${message}; spans are dropped until that is fixed`)
		}
		const tracer = ctx.own(openTracer({ collector, version, sample_ratio, trouble }), 'spans on their way')
		const runs = traceRuns({
			tracer,
			content,
			recordOf: async (run_id) => ctx.use('runs').get(run_id),
			failed: (error) => ctx.log.error({ err: error }, 'spans of a run could not be made'),
		})
		ctx.defer(() => runs.end(), 'open spans')
		ctx.defer(
			ctx.events.subscribe({}, ({ event }) => runs.handle(event)),
			'listener of events',
		)
		ctx.extend('metrics', {
			metrics: {
				svc_trace_spans_total: {
					help: 'Spans that were sent, or dropped because the collector was not available.',
					type: 'counter',
				},
			},
			read() {
				const { sent, dropped } = tracer.stats()
				return {
					svc_trace_spans_total: [
						{ labels: { outcome: 'sent' }, value: sent },
						{ labels: { outcome: 'dropped' }, value: dropped },
					],
				}
			},
		})
	},
})

/** Null if there is none. An invalid address in the file is an error; in the environment it may be meant for other programs. */
function collectorFor(ctx: Context<TracingSettings>): Collector | null {
	try {
		return collectorOf(ctx.config, ctx.env, ctx.gateway.version)
	} catch (error) {
		if (ctx.config.endpoint !== null) throw error
		ctx.trouble(messageOf(error))
		ctx.log.warn(`nothing is traced: ${messageOf(error)}`)
		return null
	}
}
