/** Decides which log messages a session's client gets: by their level, and within a rate limit. */
import { LoggingLevelSchema } from '@modelcontextprotocol/sdk/types.js'
import type { LoggingLevel } from '@modelcontextprotocol/sdk/types.js'

/** Limit of messages in a period. */
const LIMIT = 100
const PERIOD_MS = 10_000

export type ClientLog = ReturnType<typeof openClientLog>

/** Until the client sets a level, it gets only warnings and errors. */
export function openClientLog(now: () => number = () => performance.now()) {
	let began = now()
	let sent = 0
	let omitted = 0
	return {
		/** The minimum level of messages that the client gets. */
		level: 'warning' as LoggingLevel,
		/** Undefined if a message of this level must not be sent. `omitted`: messages that the rate limit suppressed before this one. */
		admit(level: LoggingLevel): { omitted: number } | undefined {
			if (severityOf(level) < severityOf(this.level)) return undefined
			if (now() - began >= PERIOD_MS) {
				began = now()
				sent = 0
			}
			if (sent >= LIMIT) {
				omitted++
				return undefined
			}
			sent++
			const before = omitted
			omitted = 0
			return { omitted: before }
		},
	}
}

function severityOf(level: LoggingLevel): number {
	return LoggingLevelSchema.options.indexOf(level)
}
