import type { NewEvent } from '../protocol.ts'
import type { Redaction } from './view.ts'

/**
 * Reports redactions as events: for each secret and sink at most one in `everyMs`, whose count includes the redactions since the
 * previous event. Infinity: only the first is reported.
 */
export function noticesOf(report: (event: NewEvent) => void, everyMs: number): (found: Redaction) => void {
	/** At most one entry for each secret and sink. */
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
