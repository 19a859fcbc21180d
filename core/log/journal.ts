import { fstatSync } from 'node:fs'

/** syslog(3) priorities of pino's levels; without one, systemd's journal stores a line as "info". */
const priorities: Record<string, number> = { 10: 7, 20: 7, 30: 6, 40: 4, 50: 3, 60: 2 }
const INFO = 6

/** Whether standard error is systemd's journal. Child processes inherit the variable, but not always the stream. */
export function isJournal({ JOURNAL_STREAM }: NodeJS.ProcessEnv): boolean {
	if (!JOURNAL_STREAM) return false
	try {
		const { dev, ino } = fstatSync(2, { bigint: true })
		return JOURNAL_STREAM === `${dev}:${ino}`
	} catch {
		return false // standard error is closed
	}
}

/** Puts the priority of a JSON line in front of it, which the journal removes again (sd-daemon(3)). */
export function withPriority(line: string): string {
	const level = /^\{"level":(\d+)/.exec(line)?.[1] ?? ''
	return `<${priorities[level] ?? INFO}>${line}`
}
