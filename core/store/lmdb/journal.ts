import { setImmediate as turn } from 'node:timers/promises'
import { Fault } from '../../errors.ts'
import { behind, endOf } from '../keys.ts'
import type { EventEnvelope, RunJournal } from '../ports.ts'
import type { Tables } from './tables.ts'
import { indexKey, mustRead } from './log-record.ts'
import { keysOf } from './read.ts'
import type { Writer } from './writer.ts'

/** Records read before yielding to other work. */
const records = 256

/**
 * A run's journal in the log. Each record names the sequence before it, so that a missing one is detected: repeating a step
 * would be worse than a run that fails with `store_damaged`.
 */
export async function readJournal({ log, runs }: Tables, writer: Writer, run: string): Promise<RunJournal> {
	const steps: unknown[] = []
	let last: number | undefined
	let lastEvent: EventEnvelope | undefined
	let start = indexKey(run, '')
	for (;;) {
		writer.mustBeOpen()
		const keys = keysOf(runs, { start, end: endOf(run), limit: records })
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
		if (keys.length < records) return { last: last ?? 0, lastEvent, steps }
		start = behind(keys.at(-1) as string)
		await turn()
	}
}
