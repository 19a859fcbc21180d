import type { NewEvent } from '../protocol.ts'
import type { Redaction } from './view.ts'

/**
 * Reports redactions as events: for each secret and sink at most one in `everyMs`, whose count includes those since
 * the previous one. Infinity: one for all.
 */
export function noticesOf(tell: (event: NewEvent) => void, everyMs: number): (found: Redaction) => void {
	/** As large as the number of secrets at most, times that of the sinks. */
	const told = new Map<string, { until: number; untold: number }>()
	return ({ id, name, sink, count }) => {
		const key = `${sink} ${id}`
		const now = performance.now()
		const before = told.get(key)
		if (before && now < before.until) {
			before.untold += count
			return
		}
		told.set(key, { until: now + everyMs, untold: 0 })
		const payload = { secret: name, secret_id: id, sink, count: count + (before?.untold ?? 0) }
		tell({ event_type: 'security.redacted', payload })
	}
}
