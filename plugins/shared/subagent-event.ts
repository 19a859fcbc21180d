import type { WireError } from '../../core/errors.ts'
import type { NewEvent } from '../../core/protocol.ts'

interface EndedRun {
	run_id: string
	status: string
	error: WireError | null
}

/** The event that reports the end of a sub-agent. */
export function subagentEvent({ run_id, status, error }: EndedRun): NewEvent {
	if (status === 'completed') return { event_type: 'subagent.completed', payload: { run_id } }
	return { event_type: 'subagent.failed', payload: { run_id, code: error?.code ?? 'stopped' } }
}
