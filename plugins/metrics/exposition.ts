import type { Metric } from './metric.ts'

const PLAIN = 'text/plain; version=0.0.4; charset=utf-8'
const OPEN_METRICS = 'application/openmetrics-text; version=1.0.0; charset=utf-8'

export interface Exposition {
	/** Its media type. */
	type: string
	text: string
}

/**
 * Metrics in Prometheus' format, or in OpenMetrics if `accept` prefers it. Each scrape has its own registry, since a registry
 * renames its counters for OpenMetrics.
 */
export async function expose(metrics: readonly Metric[], accept: string): Promise<Exposition> {
	const { Registry } = (await import('prom-client')).default
	const type = prefersOpenMetrics(accept) ? OPEN_METRICS : PLAIN
	const registry = new Registry()
	registry.setContentType(type as typeof registry.contentType)
	// The registry uses no other members of a metric, although its types require them.
	for (const metric of metrics) registry.registerMetric(registrable(metric) as never)
	return { type, text: await registry.metrics() }
}

function registrable({ name, help, type, samples }: Metric): object {
	const metric = {
		name,
		type,
		async get() {
			const values = samples().map(({ labels, value, suffix }) => ({
				labels,
				value,
				...(suffix !== undefined && { metricName: name + suffix }),
			}))
			// `metric.name`: the registry may have renamed it.
			return { name: metric.name, help, type, values, aggregator: 'sum' }
		},
	}
	return metric
}

/** By the weights of the header Accept; Prometheus lists both formats and prefers the one with the higher weight. */
function prefersOpenMetrics(accept: string): boolean {
	const weights = new Map<string, number>()
	for (const range of accept.split(',')) {
		const [media = '', ...parameters] = range.split(';').map((part) => part.trim().toLowerCase())
		const weight = Number(parameters.find((one) => one.startsWith('q='))?.slice(2) ?? 1)
		weights.set(media, Math.max(weights.get(media) ?? 0, Number.isNaN(weight) ? 0 : weight))
	}
	const open = weights.get('application/openmetrics-text') ?? 0
	return open > 0 && open >= (weights.get('text/plain') ?? 0)
}
