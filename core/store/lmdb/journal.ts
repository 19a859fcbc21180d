import { Fault } from '../../errors.ts'
import { endOf } from '../keys.ts'
import type { EventEnvelope, RunJournal } from '../ports.ts'
import { keyBatches } from './tables.ts'
import type { Tables } from './tables.ts'
import { indexKey, mustRead } from './log-record.ts'
import type { Writer } from './writer.ts'

/** Records read before yielding to other work. */
const batch = 256

/**
 * A run's journal in the log. Each record names the sequence before it, so that a missing one is detected: repeating a step
 * would be worse than a run that fails with `store_damaged`.
 */
export async function readJournal({ log, runs }: Tables, writer: Writer, run: string): Promise<RunJournal> {
	const steps: unknown[] = []
	let last: number | undefined
	let lastEvent: EventEnvelope | undefined
	const range = { start: indexKey(run, ''), end: endOf(run) }
	for await (const keys of keyBatches({ table: runs, writer }, range, batch)) {
		for (const key of keys) {
			const { before, entries } = mustRead(log, key.slice(run.length + 1))
			// The first records of an old run may have been pruned.
			if (last !== undefined && last !== before)
				throw new Fault('store_damaged', `the log of run ${run} has a gap after sequence ${last}: restore a backup`)
			for (const { event, step } of entries) {
				if (step !== undefined) steps.push(step)
				lastEvent = event
				last = event.sequence
			}
		}
	}
	return { last: last ?? 0, lastEvent, steps }
}
