import type { Destination } from '../runs/contract.ts'

export interface SubagentSettings {
	/** Sub-agents that one run may start. */
	max_per_run: number
	/** A run that a person started is at depth 0. */
	max_depth: number
}

/** A sub-agent. The record exists from the call that starts it until its end is reported and its parent run has ended. */
export interface Spawned {
	run_id: string
	parent_run_id: string
	/** The call waits for its end; otherwise its result is delivered as a run in the parent's conversation. */
	wait: boolean
	/** Where the answer to its result goes. Absent in records of version 0.1.0: to the chat of the parent, if there is one. */
	destination?: Destination
	/** Its end is being reported as an event, or was reported: a crash may come in between. */
	end?: 'telling' | 'told'
	/** The run that delivers its result. */
	delivered?: string
}

export type SubagentCode = 'subagent_limit'

declare module '../../core/errors.ts' {
	interface ErrorCodes extends Record<SubagentCode, true> {}
}

declare module '../../config/types.ts' {
	interface Config {
		subagents: SubagentSettings
	}
}
