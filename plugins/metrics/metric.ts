/** Metrics as plain numbers: counting costs one addition, everything else happens at the scrape. */

type Labels = Readonly<Record<string, string>>

interface Sample {
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

/** Limit of series of one metric. Further ones are counted under the labels `other`. */
export const SERIES_LIMIT = 1_000

/** `values`: the values of the labels, in order. */
export function counter(
	name: string,
	help: string,
	labelNames: readonly string[] = [],
): Metric & { add(values: readonly string[], by?: number): void } {
	const table = openTable(labelNames, () => ({ count: 0 }))
	return {
		name,
		help,
		type: 'counter',
		add: (values, by = 1) => void (table.at(values).count += by),
		samples: () => table.all().map(({ labels, value }) => ({ labels, value: value.count })),
	}
}

/** `bounds`: upper bounds of the buckets, in seconds, ascending. */
export function histogram(
	name: string,
	help: string,
	bounds: readonly number[],
	labelNames: readonly string[] = [],
): Metric & { observe(values: readonly string[], seconds: number): void } {
	const table = openTable(labelNames, () => ({ counts: bounds.map(() => 0), sum: 0, count: 0 }))
	return {
		name,
		help,
		type: 'histogram',
		observe(values, seconds) {
			const series = table.at(values)
			series.sum += seconds
			series.count++
			const bucket = bounds.findIndex((bound) => seconds <= bound)
			if (bucket >= 0) series.counts[bucket] = (series.counts[bucket] ?? 0) + 1
		},
		samples: () =>
			table.all().flatMap(({ labels, value: { counts, sum, count } }): Sample[] => {
				let below = 0
				const buckets = bounds.map((bound, at): Sample => {
					below += counts[at] ?? 0
					return { labels: { ...labels, le: String(bound) }, value: below, suffix: '_bucket' }
				})
				return [
					...buckets,
					{ labels: { ...labels, le: '+Inf' }, value: count, suffix: '_bucket' },
					{ labels, value: sum, suffix: '_sum' },
					{ labels, value: count, suffix: '_count' },
				]
			}),
	}
}

function openTable<Value>(names: readonly string[], make: () => Value) {
	const rows = new Map<string, { labels: Labels; value: Value }>()
	const others = names.map(() => 'other')
	const rowOf = (values: readonly string[]): Value => {
		const key = values.join('\n')
		const known = rows.get(key)
		if (known) return known.value
		if (rows.size >= SERIES_LIMIT && values !== others) return rowOf(others)
		const value = make()
		rows.set(key, { labels: Object.fromEntries(names.map((name, at) => [name, values[at] ?? ''])), value })
		return value
	}
	// The single series of a metric without labels exists from the start: `rate` needs its initial zero.
	if (names.length === 0) rowOf([])
	return { at: rowOf, all: () => [...rows.values()] }
}
