/** What is told of refused deliveries: 30 of a webhook within a minute, so that nobody can fill the audit log from outside. */
export interface Notices {
	/**
	 * Calls `tell` unless too much was told already; `untold`: how many went by since the last one, to be said with it.
	 */
	notice(id: string, tell: (untold: { untold?: number }) => void): void
}

interface Told {
	/** Milliseconds of the monotonic clock. */
	minuteEnds: number
	count: number
	untold: number
}

const MINUTE_MS = 60_000
const NOTICES = 30
/** Above that the old ones are forgotten, once a minute. */
const WEBHOOKS = 4_096

export function openNotices(clock: () => number = () => performance.now()): Notices {
	const told = new Map<string, Told>()
	let sweepAt = 0

	const sweep = (now: number): void => {
		sweepAt = now + MINUTE_MS
		for (const [key, { minuteEnds }] of told) if (minuteEnds <= now) told.delete(key)
	}
	return {
		notice(id, tell) {
			const now = clock()
			if (told.size > WEBHOOKS && sweepAt <= now) sweep(now)
			const one = told.get(id) ?? { minuteEnds: 0, count: 0, untold: 0 }
			told.set(id, one)
			if (one.minuteEnds <= now) Object.assign(one, { minuteEnds: now + MINUTE_MS, count: 0 })
			if (one.count >= NOTICES) return void one.untold++
			one.count++
			tell(one.untold > 0 ? { untold: one.untold } : {})
			one.untold = 0
		},
	}
}
