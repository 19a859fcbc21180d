/** What log lines and events say about the run that causes them. */
import { withLogFields } from '../../core/util/context.ts'
import type { LogFields } from '../../core/util/context.ts'
import type { RunRecord } from './contract.ts'

export function fieldsOf({ run_id, agent, request_id }: RunRecord): LogFields {
	return { run_id, agent, ...(request_id !== undefined && { request_id }) }
}

/** Lines of the log are about the run, and events that it causes elsewhere name its agent. */
export function inContext<T>(run: RunRecord, work: () => Promise<T>): Promise<T> {
	return withLogFields(fieldsOf(run), work, { actor: { kind: 'agent', id: run.agent }, payer: run.payer })
}
