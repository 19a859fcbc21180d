export interface SubagentSettings {
	/** Sub-agents that one run may start. */
	max_per_run: number
	/** A run of a person's is at depth 0. */
	max_depth: number
}

/** A sub-agent, from the call that started it until its end is told and the run that started it is over. */
export interface Spawned {
	run_id: string
	parent_run_id: string
	/** The call waits for its end; otherwise its result is delivered as a run of the parent's conversation. */
	wait: boolean
	/** Its end is being told as an event, or was: a crash may come between. */
	end?: 'telling' | 'told'
	/** The run that delivers its result. */
	delivered?: string
}
