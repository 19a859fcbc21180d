/** One health check. */
export interface Check {
	name: string
	ok: boolean
	/** The state; if it is not well, what to do. */
	message: string
}

export interface Health {
	/** `degraded`: it serves, but something needs attention. */
	status: 'ok' | 'degraded' | 'starting' | 'draining'
	version: string
	generation: number
	/** Seconds since the start. */
	uptime_s: number
	checks: Check[]
}
