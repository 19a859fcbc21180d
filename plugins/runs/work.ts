/** A run in execution, and the fields of its log lines. */
import { withLogFields } from '../../core/util/context.ts'
import type { LogFields } from '../../core/util/context.ts'
import type { Context } from '../../core/plugin.ts'
import type { AgentLimits, AgentRecord } from '../agents/contract.ts'
import type { RunLog } from './run-log.ts'
import type { ModelOrder } from '../../sandbox/order.ts'
import type { Account } from '../usage/contract.ts'
import type { RunOutcome, SentRequest } from '../../core/protocol.ts'
import type { FreshRun } from './begin.ts'
import type { RunRecord, RunSettings } from './contract.ts'
import type { RunLock } from './run-lock.ts'

/** A run in execution. */
export interface Work {
	ctx: Context<RunSettings>
	run: RunRecord
	agent: AgentRecord
	/** The agent's limits; the gateway's for those that the agent does not set. */
	limits: AgentLimits
	/** The id of the question that a call of this execution waits for. Further approvals are asked after it. */
	waits_for?: string
	log: RunLog
	lock: RunLock
	/** Its models, once it has a thread. */
	models?: readonly ModelOrder[]
	/** Counts the usage of its models. */
	account: Account
	/** Milliseconds that the run has been active: before this execution, and since. */
	active_ms(): number
	/** Stores a request that was sent to a model. Absent if requests are not kept. */
	keep?: ((request: SentRequest) => void) | undefined
	/** Milliseconds that calls waited for a person: not active time. */
	waited_ms: number
	/** Set while the beginning of the run is being written. If that fails, nothing of the run may remain. */
	fresh?: FreshRun
	/** The content of the journal's step `about`, which may not be written yet. */
	about?: string | undefined
	/** The first attempt of the current job. */
	isFirst?: boolean
}

export type LoggedRun = Pick<Work, 'ctx' | 'run' | 'log'>
export type Paused = Pick<Extract<RunOutcome, { status: 'paused' }>, 'status'>
export type Final = Exclude<RunOutcome, { status: 'paused' }>

export function logFieldsOf({ run_id, agent, request_id }: RunRecord): LogFields {
	return { run_id, agent, ...(request_id !== undefined && { request_id }) }
}

/** Executes `work` so that its log lines have the fields of the run, and its events name the run's agent as their actor. */
export function inContext<T>(run: RunRecord, work: () => Promise<T>): Promise<T> {
	return withLogFields(logFieldsOf(run), work, { actor: { kind: 'agent', id: run.agent }, payer: run.payer })
}
