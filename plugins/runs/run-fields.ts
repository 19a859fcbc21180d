/** Attributes log lines and events to the run that causes them. */
import { withLogFields } from '../../core/util/context.ts'
import type { LogFields } from '../../core/util/context.ts'
import type { RunRecord } from './contract.ts'

export function logFieldsOf({ run_id, agent, request_id }: RunRecord): LogFields {
	return { run_id, agent, ...(request_id !== undefined && { request_id }) }
}

/** Executes `work` so that its log lines have the fields of the run, and its events name the run's agent as their actor. */
export function inContext<T>(run: RunRecord, work: () => Promise<T>): Promise<T> {
	return withLogFields(logFieldsOf(run), work, { actor: { kind: 'agent', id: run.agent }, payer: run.payer })
}
