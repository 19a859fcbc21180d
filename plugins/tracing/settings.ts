import { defineSettings } from '../../config/declaration.ts'
import { addressOrNull, allSettings, flag } from '../../config/fields.ts'
import type { TracingSettings } from './contract.ts'

export default defineSettings<TracingSettings>({
	description: 'Spans of runs, model calls and tools, for OpenTelemetry.',
	topic: 'Operation',
	variables: { OTEL_EXPORTER_OTLP_ENDPOINT: 'Address to which spans are sent, unless `tracing.endpoint` is set.' },
	schema: (joi) =>
		allSettings<TracingSettings>({
			endpoint: addressOrNull(
				'http://127.0.0.1:4318',
				'OTEL_EXPORTER_OTLP_ENDPOINT, or none',
				'Address of a collector that accepts OTLP over HTTP, such as http://127.0.0.1:4318;',
			),
			sample_ratio: joi
				.number()
				.min(0)
				.max(1)
				.default(1)
				.description('The share of runs that are traced, 0 to 1. Default 1.'),
			content: flag(false, 'Whether spans contain prompts, answers and arguments, without secrets.'),
		}),
})
