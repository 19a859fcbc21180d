import type { Destination } from '../runs/contract.ts'

export interface SubagentSettings {
	/** Sub-agents that one run may start. */
	max_per_run: number
	/** A run that no other run started has depth 0. */
	max_depth: number
}

/** The record of a sub-agent: kept from the call that starts it until its end is reported and its parent run has ended. */
export interface Spawned {
	run_id: string
	parent_run_id: string
	/** The call waits for its end; otherwise its result is delivered as a run in the parent's conversation. */
	wait: boolean
	/** The destination of the answer to its result. Absent in records of version 0.1.0: then the chat of the parent, if any. */
	destination?: Destination
	/** The event of its end is being written (a crash may interrupt this), or was written. */
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
