export type Labels = Readonly<Record<string, string>>

export interface Sample {
	labels: Labels
	value: number
	/** Suffix of the metric's name, such as `_bucket`. */
	suffix?: string
}

/** A metric as exported: its description, and its current values. */
export interface Metric {
	/** A counter's ends in `_total`. */
	name: string
	help: string
	type: 'counter' | 'gauge' | 'histogram'
	samples(): Sample[]
}

/** A metric with fixed values: one number, or several samples. */
export function gauge(name: string, help: string, samples: number | Sample[], type: Metric['type'] = 'gauge'): Metric {
	return { name, help, type, samples: () => (typeof samples === 'number' ? [{ labels: {}, value: samples }] : samples) }
}

/** One sample for each entry, with the key as its label. */
export function by(label: string, entries: Iterable<readonly [value: string, number: number]>): Sample[] {
	return [...entries].map(([value, number]) => ({ labels: { [label]: value }, value: number }))
}
