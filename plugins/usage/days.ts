/** Days of the usage. They begin and end at midnight UTC. */
const DAY_MS = 24 * 3_600_000

/** The day of a time, as `2026-11-02`, plus `shift` days. */
export function dayOf(ms: number, shift = 0): string {
	return new Date(ms + shift * DAY_MS).toISOString().slice(0, 10)
}

/** Uses `Date.now()`, which tests replace. */
export function today(): string {
	return dayOf(Date.now())
}

/** Seconds until the day ends, at least 1. */
export function secondsLeft(): number {
	return Math.max(1, Math.ceil((Date.parse(dayOf(Date.now(), 1)) - Date.now()) / 1000))
}

/** When the day ends, for people: as a time and as a duration. */
export function endOfDay(): string {
	const end = `${dayOf(Date.now(), 1)}T00:00:00Z`
	const minutes = Math.ceil((Date.parse(end) - Date.now()) / 60_000)
	const left = minutes < 60 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`
	return `${end}, in ${left}`
}
