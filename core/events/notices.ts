/** Limits events about refused requests per kind, so that outsiders cannot fill the audit log. */
export interface Notices {
	/**
	 * Calls `report` unless the limit for `id` is reached. It gets what was left out since its last call.
	 * `source`: where the request came from.
	 */
	notice(id: string, report: Report, source?: string): void
	/** For each id, reports the last notice that was left out, if the limit allows it. Call it every minute. */
	reportRest(): void
}

type Report = (untold: Untold) => void

/** How many were left out. `since` (when the first one came) and `sources` are set if `notice` was given sources. */
export interface Untold {
	untold?: number
	since?: string
	sources?: string[]
}

interface Count {
	/** How many may be reported now. */
	room: number
	/** When `room` was computed, in milliseconds of the monotonic clock. */
	at: number
	untold: number
	since: string
	sources: Set<string>
	last?: Report
}

export const MINUTE_MS = 60_000
/** Above this number, entries that equal new ones are dropped, once a minute. */
const KINDS = 4_096
const SOURCES = 16

/** Each id may report `atOnce` notices at once, then one a minute: anyone can cause them, and they are stored for a month. */
export function openNotices(atOnce: number, clock: () => number = () => performance.now()): Notices {
	const counts = new Map<string, Count>()
	let sweepAt = 0

	const roomOf = (one: Count, now: number): number => Math.min(atOnce, one.room + (now - one.at) / MINUTE_MS)
	const take = (one: Count, now: number): boolean => {
		one.room = roomOf(one, now)
		one.at = now
		if (one.room < 1) return false
		one.room--
		return true
	}
	const sweep = (now: number): void => {
		sweepAt = now + MINUTE_MS
		for (const [id, one] of counts) if (one.untold === 0 && roomOf(one, now) === atOnce) counts.delete(id)
	}
	const send = (one: Count, report: Report): void => {
		const { untold, since, sources } = one
		Object.assign(one, { untold: 0, sources: new Set(), last: undefined })
		report(untold === 0 ? {} : { untold, ...(sources.size > 0 && { since, sources: [...sources] }) })
	}
	return {
		notice(id, report, source) {
			const now = clock()
			if (counts.size > KINDS && sweepAt <= now) sweep(now)
			const one = counts.get(id) ?? { room: atOnce, at: now, untold: 0, since: '', sources: new Set() }
			counts.set(id, one)
			if (take(one, now)) return send(one, report)
			if (one.untold++ === 0) one.since = new Date().toISOString()
			if (source !== undefined && one.sources.size < SOURCES) one.sources.add(source)
			one.last = report
		},
		reportRest() {
			const now = clock()
			for (const one of counts.values()) {
				if (!one.last || !take(one, now)) continue
				one.untold--
				send(one, one.last)
			}
		},
	}
}
