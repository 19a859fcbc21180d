/** Reads the records of the log in order, from memory or from the cluster. */
import { setTimeout as pause } from 'node:timers/promises'
import { Fault } from '../../../core/errors.ts'
import type { EventEnvelope, RunJournal } from '../../../core/store/ports.ts'
import { PATIENCE_MS } from './client.ts'
import type { Client } from './client.ts'
import { isRecordSubject, recordOf } from './log-record.ts'
import type { LogRecord } from './log-record.ts'
import { messagesFrom } from './read-stream.ts'
import type { Recent } from './recent.ts'
import { token } from './streams.ts'
import type { Names } from './streams.ts'

export type LogSource = ReturnType<typeof openLogSource>

/** Size of the first window when reading backwards, in records. */
const WINDOW = 256
/** A window in which fewer records than this are found is followed by a larger one. */
const FEW = 64
/** Before a journal is read again. */
const BEHIND_MS = 50

export function openLogSource(client: Client, names: Names, recent: Recent, first: () => number) {
	/** Runs have their own subject; the events of the gateway itself have several. */
	const stored = async function* (seq: number, end: number, run?: string): AsyncGenerator<LogRecord> {
		const next_by_subj = run === undefined ? `${names.prefix}.ev.>` : runSubject(names, run)
		for await (const message of messagesFrom(client, names.events, { seq, next_by_subj })) {
			if (message.seq >= end) return
			if (isRecordSubject(names, message.subject)) yield recordOf(names.events, message)
		}
	}

	return {
		/** Records from the position `seq` on, of one run or of all. */
		async *forwards(seq: number, run?: string): AsyncGenerator<LogRecord> {
			let next = Math.max(1, seq)
			for (let start = recent.from(); next < start; start = recent.from()) {
				yield* stored(next, start, run)
				next = start
			}
			// Records that are added meanwhile are newer than what the reader asked for.
			for (const record of recent.records(run)) if (record.seq >= next) yield recordOf(names.events, record)
		},
		/** Records at `seq` and before it, the newest first. */
		async *backwards(seq: number, run?: string): AsyncGenerator<LogRecord> {
			const start = recent.from()
			for (const record of recent.records(run).toReversed())
				if (record.seq <= seq && record.seq >= start) yield recordOf(names.events, record)
			let end = Math.min(seq + 1, start)
			for (let size = WINDOW; end > first();) {
				const from = Math.max(1, end - size)
				const window = await Array.fromAsync(stored(from, end, run))
				yield* window.toReversed()
				end = from
				if (window.length < FEW) size *= 4
			}
		},
	}
}

export function runSubject({ prefix }: Names, run: string): string {
	return `${prefix}.ev.0.${token(run)}`
}

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
