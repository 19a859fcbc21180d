/** Parses a time: ISO 8601, or relative, such as `in 20 minutes`. */
import { Cron } from 'croner'

const units = { second: 1_000, minute: 60_000, hour: 3_600_000, day: 86_400_000, week: 604_800_000 } as const
const PART = '(\\d{1,6}) ?(second|minute|hour|day|week)s?'
const FROM_NOW = new RegExp(`^in (${PART})((,| and|) (${PART}))*$`, 'i')
const ISO = /^\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d{1,3})?)?(Z|[+-]\d\d:?\d\d)?$/i

/**
 * Returns milliseconds since 1970; undefined if `text` is not a time. `timezone` (a valid IANA name) applies to a time without an
 * offset; returns `local` if both are missing. A time that occurs twice means the first; one that the clock skips is shifted by the
 * length of the gap.
 */
export function instantOf(text: string, timezone: string | undefined, now: number): number | 'local' | undefined {
	const words = text.trim().replace(/\s+/g, ' ')
	if (FROM_NOW.test(words)) {
		const parts = [...words.matchAll(new RegExp(PART, 'gi'))]
		return parts.reduce((time, [, count, unit]) => time + Number(count) * millisecondsOf(unit), now)
	}
	const found = ISO.exec(words)
	if (!found) return undefined
	const [, , , offset] = found
	const iso = words.replace(' ', 'T').toUpperCase()
	const time = Date.parse(offset === undefined ? `${iso}Z` : iso)
	if (Number.isNaN(time) || !isDate(iso.slice(0, 10))) return undefined
	if (offset !== undefined) return time
	if (timezone === undefined) return 'local'
	const seconds = iso.length === 16 ? `${iso}:00` : iso.slice(0, 19)
	return new Cron(seconds, { paused: true, timezone }).nextRun(new Date(0))?.getTime()
}

/** Whether the date exists: `Date.parse` accepts 31 February as 3 March. */
function isDate(date: string): boolean {
	return new Date(`${date}T00:00:00Z`).toISOString().startsWith(date)
}

function millisecondsOf(unit: string | undefined): number {
	return units[(unit ?? '').toLowerCase() as keyof typeof units]
}
