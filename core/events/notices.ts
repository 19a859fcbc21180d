/** Limits events about refused requests per kind, so that outsiders cannot fill the audit log. */
import { MINUTE_MS, openBuckets } from '../util/token-buckets.ts'

/**
 * Calls `report` unless the limit for `id` is reached. It gets what was left out since its last call. `source`: where the
 * request came from.
 */
export type Notice = (id: string, report: Report, source?: string) => void

type Report = (untold: Untold) => void

/** How many were left out. `since` (when the first one came) and `sources` are set if `notice` was given sources. */
export interface Untold {
	untold?: number
	since?: string
	sources?: string[]
}

interface LeftOut {
	count: number
	since: string
	sources: Set<string>
	/** Of the last one. */
	report: Report
}

const SOURCES = 16

interface NoticeOptions {
	/** As `Context.every`: with it, the last notice that was left out of each id is reported once the limit allows it. */
	every?(ms: number, work: () => void): unknown
	/** Milliseconds of the monotonic clock. */
	clock?: (() => number) | undefined
}

/** Each id may report `atOnce` notices at once, then one a minute: anyone can cause them, and they are stored for a month. */
export function openNotices(atOnce: number, { every, clock }: NoticeOptions = {}): Notice {
	const buckets = openBuckets({ at_once: atOnce, per_minute: 1 }, clock)
	const waiting = new Map<string, LeftOut>()
	every?.(MINUTE_MS, () => {
		for (const [id, one] of waiting) {
			if (buckets.take(id) > 0) continue
			waiting.delete(id)
			one.report(untoldOf(one, one.count - 1))
		}
	})
	return (id, report, source) => {
		const before = waiting.get(id)
		if (buckets.take(id) === 0) {
			waiting.delete(id)
			return report(before ? untoldOf(before, before.count) : {})
		}
		const one = before ?? { count: 0, since: new Date().toISOString(), sources: new Set(), report }
		waiting.set(id, one)
		one.count++
		one.report = report
		if (source !== undefined && one.sources.size < SOURCES) one.sources.add(source)
	}
}

function untoldOf({ since, sources }: LeftOut, untold: number): Untold {
	return untold === 0 ? {} : { untold, ...(sources.size > 0 && { since, sources: [...sources] }) }
}
