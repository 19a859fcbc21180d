/** One thing that can be well or not. */
export interface Check {
	name: string
	ok: boolean
	/** How it is; where it is not well, what to do. */
	message: string
}

export interface Health {
	/** `degraded`: it serves, and something needs a look. */
	status: 'ok' | 'degraded' | 'starting' | 'draining'
	version: string
	generation: number
	/** Seconds since the start. */
	uptime_s: number
	checks: Check[]
}
