import type { Answered } from '../../core/http/server.ts'
import type { Exposition } from './exposition.ts'

export interface Metrics {
	/** Counts a request whose response has been sent. */
	count(answered: Answered): void
	/** All current values, in the format that `accept`, a header, requests. */
	scrape(accept: string): Promise<Exposition>
}

/**
 * Metrics of another plugin. The plugin needs no import:
 *
 *     ctx.extend('metrics', {
 *       metrics: { notes_kept: { help: 'Notes that are kept.', type: 'gauge' } },
 *       read: async () => ({ notes_kept: await count() }),
 *     })
 *
 * The names of a third-party plugin's metrics begin with the plugin's name (with `_` for `-`); counters end in `_total`.
 */
export interface MetricSource {
	/** By name: `help` is one sentence. */
	metrics: Readonly<Record<string, { help: string; type: 'gauge' | 'counter' }>>
	/**
	 * The current values by name: a number, or one for each combination of labels, of which 1,000 are exported. A metric without a
	 * value is omitted. Called at a scrape, at most for a twentieth of the time: between two calls the last result is reused. After
	 * an error, or a call longer than 2 s, the metrics of this source are omitted.
	 */
	read(): Readings | Promise<Readings>
}

export type Readings = Readonly<Record<string, number | readonly Reading[] | undefined>>

export interface Reading {
	labels: Readonly<Record<string, string>>
	value: number
}

declare module '../../core/plugin.ts' {
	interface Services {
		metrics: Metrics
	}
	interface Extensions {
		metrics: MetricSource
	}
}
