import type { Payer } from '../usage/contract.ts'

/** What one caller may use. Absent: no limit. */
export interface CallerLimits extends Readonly<Payer['limits']> {
	/** On each gateway. */
	readonly requests_per_minute?: number
	/** Event streams and WebSockets that are open at the same time. */
	readonly streams?: number
}
