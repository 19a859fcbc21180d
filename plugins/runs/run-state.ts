/** A run's current state, computed from its events: for followers in the gateway, and for `svc` over HTTP. */
import type { QuestionText } from '../../core/plugin.ts'
import type { EventEnvelope } from '../../core/store/ports.ts'
import type { Question, RunStatus } from './contract.ts'

/** As in a run's record. */
export interface RunState {
	status: RunStatus
	/** The run's own question. It needs an answer if the run is paused. */
	question: (QuestionText & { question_id: string }) | null
	/** The run that it waits for while paused. */
	waits_for?: string | null
}

/** The state after an event of the run, of any type; the same object if the event changes nothing. */
export function stateAfter(
	before: RunState,
	{ event_type, payload }: Pick<EventEnvelope, 'event_type' | 'payload'>,
): RunState {
	const { question } = before
	const isOpen = question !== null && question.question_id === payload.question_id
	switch (event_type) {
		case 'run.queued':
			return { status: 'queued', question: null }
		case 'run.started':
			return { status: 'started', question: null }
		case 'run.resumed':
			// The end of a sub-agent, or the answer to an earlier question, leaves another call's question open.
			return question && !isOpen && (typeof payload.question_id === 'string' || payload.reason === 'subagent')
				? before
				: { status: 'started', question: null }
		case 'question.asked':
			return { ...before, question: payload as unknown as RunState['question'] }
		case 'question.answered':
			return isOpen ? { ...before, question: null } : before
		case 'run.paused':
			return {
				status: 'paused',
				question: isOpen ? question : null,
				waits_for: typeof payload.waits_for === 'string' ? payload.waits_for : null,
			}
		case 'run.completed':
		case 'run.failed':
		case 'run.stopped':
			return { status: event_type.slice('run.'.length) as RunStatus, question: null }
		default:
			return before
	}
}

/** The question that paused the run. */
export function openQuestion({ status, question }: RunState): RunState['question'] {
	return status === 'paused' ? question : null
}

/** Whether the question is open: neither answered nor closed. */
export function isUnanswered({ answer, closed }: Pick<Question, 'answer' | 'closed'>): boolean {
	return answer === null && closed === undefined
}

export function isEnded(status: RunStatus): boolean {
	return status === 'completed' || status === 'failed' || status === 'stopped'
}
