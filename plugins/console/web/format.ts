/** Formats numbers and times for people. */
import { jsonIn } from '../../../core/util/json-in.ts'
import type { Run, Usage } from './types.ts'

const time = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit', second: '2-digit' })
const day = new Intl.DateTimeFormat(undefined, { day: 'numeric', month: 'short' })
const number = new Intl.NumberFormat()

/** Local time, with the day unless it is today. */
export function when(iso: string): string {
	const date = new Date(iso)
	const isToday = date.toDateString() === new Date().toDateString()
	return isToday ? time.format(date) : `${day.format(date)}, ${time.format(date)}`
}

export function duration(ms: number): string {
	if (ms < 1_000) return `${Math.round(ms)} ms`
	// Longer durations would be rounded to 60.0 s.
	if (ms < 59_950) return `${(ms / 1_000).toFixed(1)} s`
	const seconds = Math.max(60, Math.floor(ms / 1_000))
	const minutes = Math.floor(seconds / 60)
	return minutes < 60 ? `${minutes} min ${seconds % 60} s` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`
}

/** The duration of a run; undefined if it has not ended, or never started. */
export function runTime({ started_at, ended_at }: Run): string | undefined {
	return started_at && ended_at ? duration(Date.parse(ended_at) - Date.parse(started_at)) : undefined
}

export function count(value: number): string {
	return number.format(value)
}

export function tokens({ input_tokens, output_tokens }: Usage): string {
	return `${count(input_tokens)} in, ${count(output_tokens)} out`
}

export function cost(value: number | null | undefined): string {
	return value === null || value === undefined ? '–' : value.toFixed(value < 1 ? 4 : 2)
}

/** The beginning of a text, in one line. */
export function excerpt(text: string, limit = 120): string {
	const line = text.replaceAll(/\s+/g, ' ').trim()
	return line.length <= limit ? line : `${line.slice(0, limit)}…`
}

/** As indented JSON. A text that is not JSON stays as it is. */
export function json(value: unknown): string {
	const parsed = typeof value === 'string' ? jsonIn(value) : value
	return typeof value === 'string' && parsed === undefined ? value : JSON.stringify(parsed, null, 2)
}
