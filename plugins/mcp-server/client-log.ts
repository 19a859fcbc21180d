/** The log that a session's client gets: what its level lets through, and no more than it can read. */
import { LoggingLevelSchema } from '@modelcontextprotocol/sdk/types.js'
import type { LoggingLevel } from '@modelcontextprotocol/sdk/types.js'

/** Messages in a period. */
const LIMIT = 100
const PERIOD_MS = 10_000

export interface ClientLog {
	/** Of the least severe messages that the client gets. */
	level: LoggingLevel
	/** Whether a message of this level may be sent; and how many were left out before it, if it is the first after some were. */
	take(level: LoggingLevel): { leftOut: number } | undefined
}

/** Until the client sets a level, it gets problems only. */
export function openClientLog(now: () => number = () => performance.now()): ClientLog {
	let began = now()
	let sent = 0
	let leftOut = 0
	return {
		level: 'warning',
		take(level) {
			if (severityOf(level) < severityOf(this.level)) return undefined
			if (now() - began >= PERIOD_MS) {
				began = now()
				sent = 0
			}
			if (sent >= LIMIT) {
				leftOut++
				return undefined
			}
			sent++
			const before = leftOut
			leftOut = 0
			return { leftOut: before }
		},
	}
}

function severityOf(level: LoggingLevel): number {
	return LoggingLevelSchema.options.indexOf(level)
}
