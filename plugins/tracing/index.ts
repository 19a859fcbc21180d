import { messageOf } from '../../core/errors.ts'
import { definePlugin } from '../../core/plugin.ts'
import type { Context } from '../../core/plugin.ts'
import type {} from '../runs/contract.ts'
import { collectorOf } from './collector.ts'
import type { Collector } from './collector.ts'
import type { Tracing, TracingSettings } from './contract.ts'

/** Spans of runs, model calls and tools, for OpenTelemetry. Without a collector nothing of it is loaded. */
export default definePlugin<TracingSettings>({
	name: 'tracing',
	// Of two that hear the same events, both would tell of the same runs.
	exclusive: true,
	config: (joi) =>
		joi.object<TracingSettings>({
			endpoint: joi.string().allow(null).required(),
			sample_ratio: joi.number().required(),
			content: joi.boolean().required(),
		}),
	async start(ctx): Promise<Tracing> {
		const { sample_ratio, content } = ctx.config
		const { version } = ctx.gateway
		const collector = collectorFor(ctx)
		if (!collector) return { stats: () => undefined }
		const [{ openTracer }, { traceRuns }] = await Promise.all([import('./tracer.ts'), import('./runs.ts')])
		const trouble = (message: string | null): void => {
			if (ctx.signal.aborted) return // what was on its way when this was released
			ctx.trouble(message)
			if (message === null) ctx.log.info('spans are delivered again')
			else ctx.log.warn(`${message}; spans are dropped until that is mended`)
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
			ctx.events.subscribe({}, ({ event }) => runs.heard(event)),
			'listener of events',
		)
		return { stats: tracer.stats }
	},
})

/** Null where there is none. What is wrong in the file refuses the file; the environment may be meant for other programs. */
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
