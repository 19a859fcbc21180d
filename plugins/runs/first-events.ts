/** The first events in the log of a run. */
import type { NewEvent } from '../../core/protocol.ts'
import type { RecordChange } from '../../core/store/ports.ts'
import { causedBy } from '../../core/util/context.ts'
import type { AgentRecord } from '../agents/contract.ts'
import type { RunRecord } from './contract.ts'
import { originIn } from './journal.ts'
import type { AboutRun } from './preamble.ts'
import type { RunLog } from './run-log.ts'

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
