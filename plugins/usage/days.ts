/** Days of the usage: they begin and end at midnight UTC, wherever the gateway is. */
const DAY_MS = 24 * 3_600_000

/** As `2026-11-02`. `shift`: days later. */
export function dayOf(ms: number, shift = 0): string {
	return new Date(ms + shift * DAY_MS).toISOString().slice(0, 10)
}

/** Not `new Date()`: tests move the clock. */
export function today(): string {
	return dayOf(Date.now())
}

/** Seconds until the day ends, at least 1. */
export function secondsLeft(): number {
	return Math.max(1, Math.ceil((Date.parse(dayOf(Date.now(), 1)) - Date.now()) / 1000))
}

/** When the day ends, for people: the time, and how long that is from now. */
export function endOfDay(): string {
	const end = `${dayOf(Date.now(), 1)}T00:00:00Z`
	const minutes = Math.ceil((Date.parse(end) - Date.now()) / 60_000)
	const left = minutes < 60 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`
	return `${end}, in ${left}`
}
