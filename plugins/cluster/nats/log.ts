import type { Logger } from '../../../core/log/log.ts'
import { BoundedMap } from '../../../core/util/bounded-map.ts'
import { appendBy, fenced } from '../../../core/store/events.ts'
import type { AppendOnce } from '../../../core/store/events.ts'
import { pageOf } from '../../../core/store/log-page.ts'
import type { PageRecord, PageRequest } from '../../../core/store/log-page.ts'
import type { Cursor, EventLog, LogEntry, LogPage } from '../../../core/store/ports.ts'
import { openLogListeners } from '../../../core/store/watchers.ts'
import type { Client } from './client.ts'
import type { Lease } from './lease.ts'
import type { OrderedWriter } from './ordered-writer.ts'
import { findEvent } from './log-find.ts'
import { pruneLog } from './log-prune.ts'
import { encodeRecord, positionAt, recordOf, seqOf } from './log-record.ts'
import { readJournal, runSubject } from './log-source.ts'
import type { LogSource } from './log-source.ts'
import type { Recent } from './recent.ts'
import type { Records } from './records.ts'
import type { Names } from './streams.ts'

export interface LogOptions {
	client: Client
	names: Names
	source: LogSource
	writer: OrderedWriter
	lease: Lease
	records: Records
	recent: Recent
	/** The position of the newest event. */
	head: number
	log?: Logger | undefined
}

/** Runs whose last sequence is cached. */
const cachedRuns = 50_000
/** The gateway's own events alternate among this many subjects: on a single one they would wait for each other. */
const GATEWAY_SUBJECTS = 16
/** Limit of records that one page reads. */
const maxRecords = 2000

/** The log in the stream of events. An append is one message, and its change of records is written after it. */
export function openEventLog(options: LogOptions): EventLog & { kept(): number } {
	const { client, names, source, writer, lease, records, recent } = options
	const listeners = openLogListeners(options.log)
	const ends = new BoundedMap<string, number>(cachedRuns)
	let head = options.head
	/** The position of a message that the gateway itself never removes; 0 if there is no such message yet. */
	let kept = seqOf(head)
	let turn = 0
	/** Settles once all events stored so far have been delivered to subscribers. */
	let delivered: Promise<unknown> = Promise.resolve()

	const endOf = async (run: string): Promise<number> => {
		const known = ends.get(run)
		if (known !== undefined) return known
		const found = await client.last(names.events, runSubject(names, run))
		// An append may have been accepted meanwhile.
		const end = ends.get(run) ?? (found && recordOf(names.events, found).entries.at(-1)?.event.sequence) ?? 0
		ends.set(run, end)
		return end
	}

	const deliver = (seq: number, run: string | null, entries: readonly LogEntry[], data: Buffer): void => {
		recent.add({ seq, run, data })
		head = positionAt(seq, entries.length - 1)
		kept ||= seq
		listeners.tell(positionAt(seq, 0), entries)
	}

	const appendOnce: AppendOnce = async (run, expectedLast, entries, ops) => {
		lease.mustHold()
		await records.learn(ops)
		if (run !== null) await endOf(run)
		// No await from here to the write, so that these checks still hold then.
		const last = run === null ? expectedLast : (ends.get(run) ?? 0)
		if (run !== null && last !== expectedLast) throw fenced(run, expectedLast, last)
		const data = encodeRecord(run, expectedLast, entries)
		const subject = run === null ? `${names.prefix}.ev.g.${turn++ % GATEWAY_SUBJECTS}` : runSubject(names, run)
		const prepared = records.prepare(ops)
		if (run !== null) ends.set(run, (entries.at(-1) as LogEntry).event.sequence)
		const { promise: appended, resolve, reject } = Promise.withResolvers<Cursor[]>()
		const settled = (seq: number | null): void => {
			if (seq === null) return
			const written = prepared.write()
			written.catch(() => {})
			const before = delivered
			delivered = (async () => {
				const [outcome] = await Promise.allSettled([written, before])
				deliver(seq, run, entries, data)
				if (outcome.status === 'rejected') reject(outcome.reason)
				else resolve(entries.map((_, index) => String(positionAt(seq, index))))
			})()
		}
		try {
			await writer.write([{ subject, data }], settled)
		} catch (error) {
			prepared.abandon()
			if (run !== null) ends.delete(run)
			throw error
		}
		return appended
	}

	return {
		append: appendBy(appendOnce),
		async read(filter, after, limit, reverse = false) {
			lease.mustHold()
			return readPage(source, { head, filter, after, limit, reverse })
		},
		async find(event_id) {
			lease.mustHold()
			const position = await findEvent(client, names, recent, event_id)
			return position === null || position > head ? null : String(position)
		},
		async journal(run) {
			lease.mustHold()
			await delivered
			const found = await client.last(names.events, runSubject(names, run))
			const end =
				(found && found.seq <= seqOf(head) && recordOf(names.events, found).entries.at(-1)?.event.sequence) || 0
			return readJournal(source, run, end)
		},
		subscribe: (listener) => listeners.add(listener),
		head: () => String(head),
		kept: () => kept,
		async prune(before, keep) {
			lease.mustHold()
			kept = seqOf(head)
			return pruneLog(client, names, source, {
				before,
				keep,
				newest: kept,
				onRemoved(seqs, runs) {
					recent.remove(seqs)
					for (const run of runs) ends.delete(run)
				},
			})
		},
	}
}

/** The cluster filters by run only: other filters read all records in order. */
function readPage(source: LogSource, request: PageRequest): Promise<LogPage> {
	const from = async function* (after: number): AsyncGenerator<PageRecord> {
		const read = request.reverse ? source.backwards : source.forwards
		for await (const { seq, entries, size } of read(seqOf(after), request.filter.run_id))
			yield {
				position: positionAt(seq, entries.length - 1),
				read: () => ({ events: entries.map(({ event }) => event), size }),
			}
	}
	return pageOf(request, from, maxRecords)
}
