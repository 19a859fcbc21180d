import type { Answered } from '../../core/http/server.ts'
import type { Exposition } from './exposition.ts'

export interface Metrics {
	/** Counts a request whose response has been sent. */
	count(answered: Answered): void
	/** All current values, in the format that `accept`, a header, requests. */
	scrape(accept: string): Promise<Exposition>
}

/**
 * Metrics of another plugin, in a form that needs no import:
 *
 *     ctx.extend('metrics', {
 *       metrics: { notes_kept: { help: 'Notes that are kept.', type: 'gauge' } },
 *       read: async () => ({ notes_kept: await count() }),
 *     })
 *
 * A third-party plugin's names begin with its own (`-` is written `_`), a counter's end in `_total`.
 */
export interface MetricSource {
	/** By name: `help` is one sentence. */
	metrics: Readonly<Record<string, { help: string; type: 'gauge' | 'counter' }>>
	/**
	 * The values now, by name: a number, or one for each combination of labels, of which 1,000 are shown. A metric without a
	 * value is left out. Called at a scrape. The calls take at most a twentieth of the time: between two calls the last result
	 * applies. An error, or a call longer than 2 s, leaves the metrics of this source out.
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
