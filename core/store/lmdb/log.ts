import type { Logger } from '../../log/log.ts'
import { AgedMap } from '../../util/aged-map.ts'
import { appendBy, fenced } from '../events.ts'
import type { AppendOnce } from '../events.ts'
import type { EventLog, LogEntry } from '../ports.ts'
import { openLogListeners } from '../watchers.ts'
import type { Tables } from './tables.ts'
import { keyNumber, keysOf } from './tables.ts'
import { readJournal } from './journal.ts'
import { indexKey, mustRead, sealRecord, writesOf } from './log-record.ts'
import { readPage } from './log-read.ts'
import { findEvent } from './log-find.ts'
import { pruneLog } from './log-prune.ts'
import type { LmdbStore } from './store.ts'
import type { Writer } from './writer.ts'

/** The end of a run in the log: its last sequence, and the position of its last entry. */
interface RunEnd {
	last: number
	position: number
}

/** Runs whose end is cached; that of any other run is read from the index. */
const rememberedRuns = 4_096
/** Above every position. */
const top = 'zzzzzzzzzzzz'

/** The log's newest record is never pruned, so that no position is ever used twice. */
export function openEventLog(tables: Tables, writer: Writer, store: LmdbStore, log?: Logger): EventLog {
	const listeners = openLogListeners(log)
	const ends = new AgedMap<string, RunEnd>()
	let durable = lastPosition(tables)
	let next = durable + 1

	const remember = (run: string, end: RunEnd): void => {
		ends.set(run, end)
		const oldest = ends.size > rememberedRuns && ends.takeOldest()
		// Events that are not durable yet cannot be read from the index.
		if (oldest && oldest[1].position > durable) ends.set(...oldest)
	}

	const appendOnce: AppendOnce = async (run, expectedLast, entries, records) => {
		writer.mustBeOpen()
		if (run !== null) {
			const { last } = ends.get(run) ?? readEnd(tables, run)
			if (last !== expectedLast) throw fenced(run, expectedLast, last)
		}
		const first = next
		const position = first + entries.length - 1
		const record = { run, before: expectedLast, first, entries }
		const { key, bytes } = sealRecord(record)
		const written = store.write(records, writesOf(tables, key, record, bytes), (isDurable) => {
			if (!isDurable) return
			durable = position
			listeners.tell(first, entries)
		})
		next = position + 1
		if (run !== null) remember(run, { last: (entries.at(-1) as LogEntry).event.sequence, position })
		await written
		return entries.map((_, index) => String(first + index))
	}

	return {
		append: appendBy(appendOnce),
		read: (filter, after, limit, reverse = false) =>
			readPage(tables, writer, { head: durable, filter, after, limit, reverse }),
		find: (event_id) => findEvent(tables, writer, { head: durable, event_id }),
		journal: (run) => readJournal(tables, writer, run),
		subscribe: (listener) => listeners.add(listener),
		head: () => String(durable),
		prune: (before, keep) =>
			pruneLog(tables, writer, {
				before,
				keep,
				newest: () => durable,
				gone(run, position) {
					if (ends.get(run)?.position === position) ends.delete(run)
				},
				log,
			}),
	}
}

function lastPosition({ log }: Tables): number {
	const [key] = keysOf(log, { start: top, end: '0', reverse: true }, 1)
	return key === undefined ? 0 : keyNumber(key)
}

function readEnd({ log, runs }: Tables, run: string): RunEnd {
	const [key] = keysOf(runs, { start: indexKey(run, top), end: indexKey(run, ''), reverse: true }, 1)
	if (key === undefined) return { last: 0, position: 0 }
	const record = mustRead(log, key.slice(run.length + 1))
	const { event } = record.entries.at(-1) as LogEntry
	return { last: event.sequence, position: record.first + record.entries.length - 1 }
}
