import type { NewEvent } from '../protocol.ts'
import type { Redaction } from './view.ts'

/**
 * Reports redactions as events: for each secret and sink at most one in `everyMs`, whose count includes those since
 * the previous one. Infinity: one for all.
 */
export function noticesOf(report: (event: NewEvent) => void, everyMs: number): (found: Redaction) => void {
	/** As large as the number of secrets at most, times that of the sinks. */
	const reported = new Map<string, { until: number; skipped: number }>()
	return ({ id, name, sink, count }) => {
		const key = `${sink} ${id}`
		const now = performance.now()
		const before = reported.get(key)
		if (before && now < before.until) {
			before.skipped += count
			return
		}
		reported.set(key, { until: now + everyMs, skipped: 0 })
		const payload = { secret: name, secret_id: id, sink, count: count + (before?.skipped ?? 0) }
		report({ event_type: 'security.redacted', payload })
	}
}
