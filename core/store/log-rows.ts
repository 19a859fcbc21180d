/** The entries of one append, as every engine stores them: as tuples they have half the size of objects with named fields. */
import type { LogEntry } from './ports.ts'

export type LogRow = [
	id: string,
	timestamp: string,
	agent: string | null,
	sequence: number,
	type: string,
	payload: Record<string, unknown>,
	...step: unknown[],
]

/** The row of an entry; the run is stored once for all rows of an append. */
export function rowOf({ event, step }: LogEntry): LogRow {
	const row: LogRow = [event.event_id, event.timestamp, event.agent_id, event.sequence, event.event_type, event.payload]
	if (step !== undefined) row.push(step)
	return row
}

/** `run`: of all entries of the append. */
export function entriesOf(run: string | null, rows: readonly LogRow[]): LogEntry[] {
	return rows.map(([event_id, timestamp, agent_id, sequence, event_type, payload, ...step]) => ({
		event: { event_id, timestamp, agent_id, run_id: run, sequence, event_type, payload },
		...(step.length > 0 && { step: step[0] }),
	}))
}
