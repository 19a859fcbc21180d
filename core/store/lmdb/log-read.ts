import { Fault } from '../../errors.ts'
import { matcher, positionOf, timeOf } from '../events.ts'
import { keyAfter } from '../keys.ts'
import type { Cursor, EventEnvelope, LogFilter, LogPage } from '../ports.ts'
import { keyBatches, keyNumber, keysOf, numberKey } from './tables.ts'
import type { KeyRange, Table, Tables } from './tables.ts'
import { indexKey, mustRead } from './log-record.ts'
import type { LogRecord } from './log-record.ts'
import { findRecord } from './record.ts'
import type { Writer } from './writer.ts'

interface PageRequest {
	/** The newest durable position. */
	head: number
	filter: LogFilter
	after: Cursor | null
	limit: number
	reverse: boolean
}

/** A page reads at most this many bytes, whatever its filter matches. */
const maxRecords = 500
const maxBytes = 8 * 1024 * 1024
/** Index entries read before yielding to other work. */
const batch = 100

/** Returns only events up to `head`: subscribers may not have received later ones yet. */
export async function readPage(tables: Tables, writer: Writer, request: PageRequest): Promise<LogPage> {
	const { head, filter, limit, reverse } = request
	if (!(limit >= 1)) throw new Fault('invalid_request', 'the limit must be at least 1')
	const matches = matcher(filter)
	const since = timeOf(filter.since, Number.NEGATIVE_INFINITY)
	const after = request.after === null ? (reverse ? head + 1 : 0) : positionOf(request.after, head)
	const found: LogPage['entries'] = []
	let records = 0
	let bytes = 0
	let at = after
	let end = true

	for await (const key of recordsFrom(tables, writer, { ...request, after })) {
		if (!reverse && keyNumber(key) > head) break
		if (found.length >= limit || records >= maxRecords || bytes >= maxBytes) {
			end = false
			break
		}
		records++
		const record = readUnlessOlder(tables.log, key, since)
		if (!record) {
			at = keyNumber(key)
			continue
		}
		bytes += record.size
		const entries = inOrder(record, reverse).filter(([position]) => (reverse ? position < after : position > after))
		for (const [position, event] of entries) {
			if (found.length >= limit) {
				end = false
				break
			}
			at = position
			if (matches(event)) found.push({ cursor: String(position), event })
		}
	}
	return { entries: found, next: end ? null : String(at) }
}

/** A record's stamp is the time of its newest event, so an older record need not be parsed. */
function readUnlessOlder(log: Table, key: string, since: number): (LogRecord & { size: number }) | undefined {
	if (since > Number.NEGATIVE_INFINITY) {
		const found = findRecord(log, key)
		if (found && found.stamp < since) return undefined
	}
	return mustRead(log, key)
}

function inOrder({ first, entries }: LogRecord, reverse: boolean): [number, EventEnvelope][] {
	const numbered = entries.map(({ event }, index): [number, EventEnvelope] => [first + index, event])
	return reverse ? numbered.toReversed() : numbered
}

/**
 * The keys of the records that may hold events after (with `reverse`: before) `after`, in that order, by the index of
 * the run or the agent if the filter names one. A record's position is that of its last entry.
 */
async function* recordsFrom(
	tables: Tables,
	writer: Writer,
	{ filter: { run_id, agent_id }, after, reverse }: { filter: LogFilter; after: number; reverse: boolean },
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
