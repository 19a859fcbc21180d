import { isFault } from '../../errors.ts'
import type { Logger } from '../../log/log.ts'
import { pruningOf, youngInARow } from '../prune.ts'
import type { Pruning } from '../prune.ts'
import { endOf } from '../keys.ts'
import { Counts } from '../../util/counts.ts'
import type { Tables } from './tables.ts'
import { keyBatches, keyNumber, keysOf, numberKey } from './tables.ts'
import { indexKey, readRecord, writesOf } from './log-record.ts'
import type { LogRecord } from './log-record.ts'
import { findRecord } from './record.ts'
import type { Write, Writer } from './writer.ts'

interface PruneRequest extends Pruning {
	/** The newest durable position. */
	newest: () => number
	/** A run's record that ends at `position` is being removed. */
	gone: (run: string, position: number) => void
	log: Logger | undefined
}

/** Records that are read before yielding to other work, and the most that one commit removes. */
const batch = 200

/** Returns how many events were removed. A record is removed as a whole, when its newest event is older than `before`. */
export async function pruneLog(tables: Tables, writer: Writer, request: PruneRequest): Promise<number> {
	const { before, isKept } = pruningOf(request)
	const all = { start: numberKey(1), end: numberKey(Number.MAX_SAFE_INTEGER) }
	let removed = 0
	let young = 0
	for await (const keys of keyBatches({ table: tables.log, writer }, all, batch)) {
		const writes: Write[] = []
		/** Runs, with the number of their records that this commit removes. */
		const gone = new Counts()
		for (const key of keys) {
			if (keyNumber(key) >= request.newest()) break
			const record = old(tables, key, before, request.log)
			young = record ? 0 : young + 1
			if (!record || (await isKept(record.run))) continue
			// The engine may have been closed while `isKept` was pending.
			writer.mustBeOpen()
			if (record.run !== null && !isFirst(tables, record.run, key, gone)) continue
			writes.push(...writesOf(tables, key, record))
			if (record.run !== null) request.gone(record.run, keyNumber(key))
			removed += record.entries.length
		}
		if (writes.length > 0) await writer.write(writes)
		if (young >= youngInARow) break
	}
	return removed
}

/** The record if it is old. A damaged one stays: its index entries cannot be determined. */
function old(tables: Tables, key: string, before: number, log?: Logger): LogRecord | undefined {
	try {
		const found = findRecord(tables.log, key)
		return found && found.stamp < before ? readRecord(tables.log, key) : undefined
	} catch (error) {
		if (!isFault(error, 'store_damaged')) throw error
		log?.warn({ err: error }, 'a damaged record of the log cannot be pruned')
		return undefined
	}
}

/**
 * Whether the record is the run's first, apart from those removed with it. After the clock was set back, a record in the
 * middle of a run can be the oldest. It stays, because the journal would report it as missing.
 */
function isFirst({ runs }: Tables, run: string, key: string, gone: Counts): boolean {
	const before = gone.of(run)
	const keys = keysOf(runs, { start: indexKey(run, ''), end: endOf(run) }, before + 1)
	if (keys[before] !== indexKey(run, key)) return false
	gone.add(run)
	return true
}
