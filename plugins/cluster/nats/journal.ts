import { setTimeout as pause } from 'node:timers/promises'
import { Fault } from '../../../core/errors.ts'
import type { EventEnvelope, RunJournal } from '../../../core/store/ports.ts'
import { PATIENCE_MS } from './client.ts'
import type { LogSource } from './log-source.ts'

const BEHIND_MS = 50

/**
 * Reads a run's journal from the log, up to `end`, the run's last sequence. Each record contains the sequence before it, so that a
 * missing record is detected: repeating a step would be worse than a run that fails with `store_damaged`.
 */
export async function readJournal(source: LogSource, run: string, end: number): Promise<RunJournal> {
	const until = performance.now() + PATIENCE_MS
	for (;;) {
		const steps: unknown[] = []
		let last: number | undefined
		let lastEvent: EventEnvelope | undefined
		let isComplete = true
		for await (const { before, entries } of source.forwards(1, run)) {
			// The first records of an old run may have been pruned.
			if (last !== undefined && last !== before) isComplete = false
			for (const { event, step } of entries) {
				if (step !== undefined) steps.push(step)
				lastEvent = event
				last = event.sequence
			}
		}
		if (isComplete && (last ?? 0) >= end) return { last: last ?? 0, lastEvent, steps }
		// The server that answered may be behind the leader.
		if (performance.now() > until)
			throw new Fault('store_damaged', `the log of run ${run} has a gap in the cluster: restore a copy`)
		await pause(BEHIND_MS)
	}
}
