/** Limits events about refused requests per kind, so that outsiders cannot fill the audit log. */
import { MINUTE_MS, openBuckets } from '../util/token-buckets.ts'

/**
 * Calls `report`, unless the limit for `id` is reached, with the notices that were suppressed since the last call for this
 * id. `source`: the sender of the request.
 */
export type Notice = (id: string, report: Report, source?: string) => void

type Report = (untold: Untold) => void

/** The number of suppressed notices. `since` (the time of the first one) and `sources` are set if the notices had sources. */
export interface Untold {
	untold?: number
	since?: string
	sources?: string[]
}

interface Suppressed {
	count: number
	since: string
	sources: Set<string>
	/** Of the newest notice. */
	report: Report
}

const MAX_SOURCES = 16

interface NoticeOptions {
	/** As `Context.every`. If given, the newest suppressed notice of each id is reported once the limit allows it. */
	every?(ms: number, work: () => void): unknown
	/** Milliseconds of the monotonic clock. */
	clock?: (() => number) | undefined
}

/**
 * Allows a burst of `atOnce` notices for each id, then one per minute: anyone can cause notices, and they are stored for a month.
 */
export function openNotices(atOnce: number, { every, clock }: NoticeOptions = {}): Notice {
	const buckets = openBuckets({ at_once: atOnce, per_minute: 1 }, clock)
	const suppressed = new Map<string, Suppressed>()
	every?.(MINUTE_MS, () => {
		for (const [id, notices] of suppressed) {
			if (buckets.take(id) > 0) continue
			suppressed.delete(id)
			notices.report(untoldOf(notices, notices.count - 1))
		}
	})
	return (id, report, source) => {
		const before = suppressed.get(id)
		if (buckets.take(id) === 0) {
			suppressed.delete(id)
			return report(before ? untoldOf(before, before.count) : {})
		}
		const notices = before ?? { count: 0, since: new Date().toISOString(), sources: new Set(), report }
		suppressed.set(id, notices)
		notices.count++
		notices.report = report
		if (source !== undefined && notices.sources.size < MAX_SOURCES) notices.sources.add(source)
	}
}

function untoldOf({ since, sources }: Suppressed, untold: number): Untold {
	return untold === 0 ? {} : { untold, ...(sources.size > 0 && { since, sources: [...sources] }) }
}
