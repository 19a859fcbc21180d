import { timeOf } from '../events.ts'
import { keyAfter } from '../keys.ts'
import { pageOf } from '../log-page.ts'
import type { PageRecord, PageRequest } from '../log-page.ts'
import type { LogPage } from '../ports.ts'
import { keyBatches, keyNumber, keysOf, numberKey } from './tables.ts'
import type { KeyRange, Table, Tables } from './tables.ts'
import { indexKey, mustRead } from './log-record.ts'
import { findRecord } from './record.ts'
import type { Writer } from './writer.ts'

/** Records that one page reads. */
const maxRecords = 500
/** Index entries read before yielding to other work. */
const batch = 100

/** One page of the log: reads at most 500 records. `writer`: refuses once the store is closed. */
export function readPage(tables: Tables, writer: Writer, request: PageRequest): Promise<LogPage> {
	const from = async function* (after: number): AsyncGenerator<PageRecord> {
		const since = timeOf(request.filter.since, Number.NEGATIVE_INFINITY)
		for await (const key of recordsFrom(tables, writer, request, after))
			yield { position: keyNumber(key), read: () => readUnlessOlder(tables.log, key, since) }
	}
	return pageOf(request, from, maxRecords)
}

/** A record's stamp is the time of its newest event, so an older record need not be parsed. */
function readUnlessOlder(log: Table, key: string, since: number): ReturnType<PageRecord['read']> {
	if (since > Number.NEGATIVE_INFINITY) {
		const found = findRecord(log, key)
		if (found && found.stamp < since) return null
	}
	const { entries, size } = mustRead(log, key)
	return { events: entries.map(({ event }) => event), size }
}

/**
 * The keys of the records that may hold events after (with `reverse`: before) `after`, in that order, by the index of
 * the run or the agent if the filter names one. A record's position is that of its last entry.
 */
async function* recordsFrom(
	tables: Tables,
	writer: Writer,
	{ filter: { run_id, agent_id }, reverse }: PageRequest,
	after: number,
): AsyncGenerator<string> {
	const table = run_id !== undefined ? tables.runs : agent_id !== undefined ? tables.agents : tables.log
	const name = run_id ?? agent_id
	const prefix = name === undefined ? '' : indexKey(name, '')
	const lowest = prefix + numberKey(1)
	const highest = prefix + numberKey(Number.MAX_SAFE_INTEGER)
	let range: KeyRange = { start: prefix + numberKey(after + 1), end: highest }
	if (reverse) {
		// Begin with the record that contains `after` itself: it may contain entries before it too.
		const [first = highest] = keysOf(table, { start: prefix + numberKey(after), end: highest }, 1)
		range = { start: keyAfter(first), end: lowest, reverse }
	}
	for await (const keys of keyBatches({ table, writer }, range, batch))
		yield* keys.map((key) => key.slice(prefix.length))
}
