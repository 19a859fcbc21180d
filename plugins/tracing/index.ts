import { definePlugin } from '../../core/plugin.ts'
import type { TracingSettings } from './contract.ts'

/** Spans of runs, model calls and tools, for OpenTelemetry. */
export default definePlugin<TracingSettings>({
	name: 'tracing',
	config: (joi) =>
		joi.object<TracingSettings>({
			endpoint: joi.string().allow(null).required(),
			sample_ratio: joi.number().required(),
			content: joi.boolean().required(),
		}),
})
