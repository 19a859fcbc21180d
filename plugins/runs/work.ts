import type { Context } from '../../core/plugin.ts'
import type { AgentLimits, AgentRecord } from '../agents/contract.ts'
import type { RunLog } from './run-log.ts'
import type { Account } from '../usage/contract.ts'
import type { RunRecord, RunSettings } from './contract.ts'
import type { RunLock } from './run-lock.ts'

/** A run in execution. */
export interface Work {
	ctx: Context<RunSettings>
	run: RunRecord
	agent: AgentRecord
	/** The agent's own, and the gateway's where it sets none. */
	limits: AgentLimits
	/** The question for whose answer a call of this execution waits: the next one is asked after it. */
	waits_for?: string
	log: RunLog
	lock: RunLock
	/** Counts what its models use. */
	account: Account
	/** Milliseconds that the run has been active: before this execution, and since. */
	active_ms(): number
}
