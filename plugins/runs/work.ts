import type { Context } from '../../core/plugin.ts'
import type { AgentLimits, AgentRecord } from '../agents/contract.ts'
import type { RunLog } from './run-log.ts'
import type { ModelOrder } from '../../sandbox/order.ts'
import type { Account } from '../usage/contract.ts'
import type { RunOutcome, SentRequest } from '../../core/protocol.ts'
import type { Begun } from './begin.ts'
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
	/** Its models, once it has a thread. */
	models?: readonly ModelOrder[]
	/** Counts what its models use. */
	account: Account
	/** Milliseconds that the run has been active: before this execution, and since. */
	active_ms(): number
}

export type LoggedRun = Pick<Work, 'ctx' | 'run' | 'log'>

/** What only the execution itself knows. */
export interface Active extends Work {
	/** Keeps a request that was sent. Absent if none is kept. */
	keep?: ((request: SentRequest) => void) | undefined
	/** Milliseconds that calls waited for a person: not active time. */
	waited_ms: number
	/** The run executes while its beginning is being written. If that is refused, nothing of the run may remain. */
	begun?: Begun
	/** As in the journal, once that is written. */
	about?: string | undefined
	/** Nobody has executed it before, as far as its job shows. */
	isFirst?: boolean
}

export type Paused = Pick<Extract<RunOutcome, { status: 'paused' }>, 'status'>
export type Final = Exclude<RunOutcome, { status: 'paused' }>
