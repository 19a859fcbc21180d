import { setImmediate as turn } from 'node:timers/promises'
import { Fault } from '../../errors.ts'
import { matcher, positionOf, timeOf } from '../events.ts'
import type { Cursor, EventEnvelope, LogFilter, LogPage } from '../ports.ts'
import type { Table, Tables } from './tables.ts'
import { keyNumber, numberKey } from './tables.ts'
import { mustRead } from './log-record.ts'
import type { LogRecord } from './log-record.ts'
import { findRecord, keysOf } from './read.ts'

export interface PageRequest {
	filter: LogFilter
	after: Cursor | null
	limit: number
	reverse: boolean
}

/** A page reads at most this many bytes, whatever its filter matches. */
const maxRecords = 500
const maxBytes = 8 * 1024 * 1024
/** Index entries read at a time. */
const chunk = 64
/** After this many records a page yields to other work. */
const busy = 100

/** Returns only events up to `head`: subscribers may not have received later ones yet. */
export async function readPage(tables: Tables, head: number, request: PageRequest): Promise<LogPage> {
	const { filter, limit, reverse } = request
	if (!(limit >= 1)) throw new Fault('invalid_request', 'the limit must be at least 1')
	const matches = matcher(filter)
	const since = timeOf(filter.since, Number.NEGATIVE_INFINITY)
	const after = request.after === null ? (reverse ? head + 1 : 0) : positionOf(request.after, head)
	const found: LogPage['entries'] = []
	let records = 0
	let bytes = 0
	let at = after
	let end = true

	for (const key of recordsFrom(tables, filter, after, reverse)) {
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
	if (records >= busy) await turn()
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
function* recordsFrom(tables: Tables, filter: LogFilter, after: number, reverse: boolean): Generator<string> {
	const { run_id, agent_id } = filter
	const table = run_id !== undefined ? tables.runs : agent_id !== undefined ? tables.agents : tables.log
	const name = run_id ?? agent_id
	const prefix = name === undefined ? '' : `${name}\0`
	const lowest = prefix + numberKey(1)
	const highest = prefix + numberKey(Number.MAX_SAFE_INTEGER)
	let from = prefix + numberKey(reverse ? after : after + 1)
	// In reverse, begin with the record that contains `after` itself: it may contain entries before it too.
	if (reverse) from = keysOf(table, { start: from, end: highest, limit: 1 })[0] ?? highest
	for (;;) {
		const keys = keysOf(table, { start: from, end: reverse ? lowest : highest, limit: chunk, reverse })
		for (const key of keys) yield key.slice(prefix.length)
		if (keys.length < chunk) return
		const last = keyNumber((keys.at(-1) as string).slice(prefix.length))
		from = prefix + numberKey(reverse ? last - 1 : last + 1)
	}
}
