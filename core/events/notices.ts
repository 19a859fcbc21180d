/** Limits events about refused requests per kind and minute, so that outsiders cannot fill the audit log. */
export interface Notices {
	/**
	 * Calls `report` unless the minute's limit for `id` is used up; `untold`: how many were left out since the last call, to be
	 * reported with it.
	 */
	notice(id: string, report: (untold: { untold?: number }) => void): void
}

interface Count {
	/** Milliseconds of the monotonic clock. */
	minuteEnds: number
	count: number
	untold: number
}

const MINUTE_MS = 60_000
/** Above this number, old entries are dropped, once a minute. */
const KINDS = 4_096

export function openNotices(perMinute: number, clock: () => number = () => performance.now()): Notices {
	const counts = new Map<string, Count>()
	let sweepAt = 0

	const sweep = (now: number): void => {
		sweepAt = now + MINUTE_MS
		for (const [key, { minuteEnds }] of counts) if (minuteEnds <= now) counts.delete(key)
	}
	return {
		notice(id, report) {
			const now = clock()
			if (counts.size > KINDS && sweepAt <= now) sweep(now)
			const one = counts.get(id) ?? { minuteEnds: 0, count: 0, untold: 0 }
			counts.set(id, one)
			if (one.minuteEnds <= now) Object.assign(one, { minuteEnds: now + MINUTE_MS, count: 0 })
			if (one.count >= perMinute) return void one.untold++
			one.count++
			report(one.untold > 0 ? { untold: one.untold } : {})
			one.untold = 0
		},
	}
}
