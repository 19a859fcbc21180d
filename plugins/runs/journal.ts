/** Reading a run's journal, and creating the events of its beginning and its entries. */
import { Fault } from '../../core/errors.ts'
import type { WireError } from '../../core/errors.ts'
import { usageOf } from '../../core/protocol.ts'
import type { ChatMessage, EndReason, ModelAnswer, NewEvent, ToolCallRequest, Usage } from '../../core/protocol.ts'
import type { RecordChange } from '../../core/store/ports.ts'
import { causedBy } from '../../core/util/context.ts'
import type { AgentRecord } from '../agents/contract.ts'
import type { AboutRun } from './preamble.ts'
import type { Journal, RunLog } from './run-log.ts'
import { inOrderOfCalls, messageOf } from '../../sandbox/context/step-messages.ts'
import { subagentEvent } from '../shared/subagent-event.ts'
import type { RunEnding, RunRecord } from './contract.ts'
import type { Ended } from './records.ts'

interface Beginning {
	run: RunRecord
	/** Absent for a run that is stopped before it executes: its model gets no persona. */
	agent?: AgentRecord
	about?: AboutRun | undefined
}

/** Appends the first events of a run, and `about` for its journal. */
export function writeBeginning(log: RunLog, { run, agent, about }: Beginning, change?: RecordChange): Promise<void> {
	const { trigger, conversation, parent, request_id, traceparent, actor, prompt, attachments } = run
	const payload = {
		trigger,
		conversation,
		...(parent && { parent_run_id: parent.run_id }),
		...(request_id !== undefined && { request_id }),
		...(traceparent !== undefined && { traceparent }),
		...(actor && { actor }),
	}
	const events: NewEvent[] = [...originIn(log, run), { event_type: 'run.started', payload }]
	const persona = agent && (run.persona ?? agent.persona)
	if (persona) events.push({ event_type: 'message.system', payload: { content: persona } })
	events.push({ event_type: 'message.user', payload: { content: prompt, ...(attachments && { attachments }) } })
	if (about) events.push(...about.events)
	const append = () => log.append(events, about && { kind: 'about', content: about.content }, change)
	// A queued run begins when an earlier run ends: its cause is its own, not that run's.
	return actor ? causedBy({ actor }, append) : append()
}

/** Whether the log contains only the first events of the run, so that it was not executed yet. */
export function isAtBeginning({ journal: { lastEvent, steps } }: RunLog): boolean {
	const isExecuted = /^(run|model|context)\./.test(lastEvent?.event_type ?? 'run.')
	return !isExecuted && steps.every(({ kind }) => kind === 'about')
}

/** The events of a model's answer. */
export function eventsOfAnswer(answer: ModelAnswer): NewEvent[] {
	const { content, reasoning, provider, model, finish_reason, usage, tool_calls } = answer
	const response: NewEvent = {
		event_type: 'model.response',
		payload: { provider, model, finish_reason, usage, tool_calls: tool_calls.map((call) => call.name) },
	}
	const thought: NewEvent[] =
		reasoning === undefined ? [] : [{ event_type: 'message.reasoning', payload: { content: reasoning } }]
	const said: NewEvent[] = content === '' ? [] : [{ event_type: 'message.assistant', payload: { content } }]
	return [response, ...thought, ...said]
}

/** Characters of an answer's reasoning that are kept. */
const REASONING_LIMIT = 64 * 1024

/** Shortens the reasoning. It is redacted before it is cut, since the cut could leave a part of a secret. */
export function withShortReasoning({ redactor }: Pick<RunLog, 'redactor'>, answer: ModelAnswer): ModelAnswer {
	const { reasoning = '' } = answer
	if (reasoning.length <= REASONING_LIMIT) return answer
	return { ...answer, reasoning: `${redactor.cut(reasoning, REASONING_LIMIT, 'record').text}…` }
}

/** The first event of a run's log. */
export function originIn({ journal }: RunLog, { origin, run_id }: RunRecord): NewEvent[] {
	if (!origin || journal.last > 0) return []
	return [{ event_type: origin.event_type, payload: { ...origin.payload, run_id } }]
}

/** How the run ended, if its log has the end. */
export function endIn({ journal: { lastEvent: event, steps } }: RunLog): Ended | null {
	switch (event?.event_type) {
		case 'run.completed': {
			const last = steps.at(-1)
			return {
				status: 'completed',
				...(last?.kind === 'model' ? completedWith(last.answer, endedBy(event.payload)) : { answer: '' }),
				usage: event.payload.usage as Usage,
			}
		}
		case 'run.failed':
			return {
				status: 'failed',
				error: { code: event.payload.code as WireError['code'], message: String(event.payload.error) },
				usage: event.payload.usage as Usage,
			}
		case 'run.stopped':
			return { status: 'stopped', usage: (event.payload.usage as Usage | undefined) ?? usageOf(steps) }
		default:
			return null
	}
}

/** The result fields of a completed run's record. */
export function completedWith(
	answer: ModelAnswer,
	ended_by?: EndReason,
): Pick<RunRecord, 'answer' | 'tool_calls' | 'finish_reason'> {
	const { content, tool_calls } = answer
	return {
		answer: content,
		...(tool_calls.length > 0 && { tool_calls }),
		finish_reason: ended_by ?? endingOf(answer),
	}
}

/** Version 0.1.0 stored the provider's finish reason unchanged. */
function endingOf({ finish_reason, tool_calls }: ModelAnswer): RunEnding {
	if (tool_calls.length > 0) return 'tool_calls'
	return finish_reason === 'length' || finish_reason === 'content_filter' ? finish_reason : 'stop'
}

function endedBy({ finish_reason }: Record<string, unknown>): EndReason | undefined {
	return endReasons.find((reason) => reason === finish_reason)
}

const endReasons: readonly EndReason[] = ['limit_steps', 'limit_tokens', 'limit_wall_time', 'repeated_calls']

/** A journal as messages. */
export function messagesIn({ steps }: Journal): ChatMessage[] {
	const names = new Map<string, string>()
	const finished = steps.filter((step) => step.kind === 'model' || step.kind === 'tool')
	return inOrderOfCalls(finished).map((step) => messageOf(step, names))
}

/** The events of a waiting run when the run it waited for has ended: empty unless that was a sub-agent. */
export function eventsOfEnded(run: RunRecord): NewEvent[] {
	return run.trigger === 'subagent' ? [subagentEvent(run)] : []
}

/** The result of a call that waited for a run that has now ended. */
export function resultOfRun({ run_id, status, answer, error }: RunRecord): unknown {
	if (status === 'completed') return { run_id, status, answer }
	const why = error ? `failed: ${error.message} (${error.code})` : 'was stopped'
	return new Fault('subagent_failed', `run ${run_id} ${why}`)
}

/** The call with that id, if the model requested it in its latest answer. */
export function pendingCall({ steps }: Journal, call_id: string): ToolCallRequest | undefined {
	for (const step of steps.toReversed()) {
		if (step.kind === 'model') return step.answer.tool_calls.find((call) => call.id === call_id)
	}
	return undefined
}
