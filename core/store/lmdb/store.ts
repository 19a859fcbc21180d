import type { Logger } from '../../log/log.ts'
import { keyAfter, compareKeys, endOf, joinKey, splitKey } from '../keys.ts'
import { checkExpected, checkOps, withSingleWrites } from '../ops.ts'
import type { CheckedOp } from '../ops.ts'
import type { Change, Entry, Key, ListOptions, Rev, Store } from '../ports.ts'
import { openSharedRecords } from '../shared-records.ts'
import { TransientMap } from '../../util/transient-map.ts'
import { openWatchers } from '../watchers.ts'
import { keyBatches } from './tables.ts'
import type { KeyRange, Table, Tables } from './tables.ts'
import { findRecord, readEntry, sealStamp, sealValue, valueOf } from './record.ts'
import type { Write, Writer } from './writer.ts'

/** A write that is accepted and not yet durable. Without `bytes` the key is deleted. */
interface Pending {
	key: string
	rev: number
	bytes: Buffer | undefined
	/** Settles when the write has succeeded or failed. Created for the first waiting reader. */
	done?: PromiseWithResolvers<void>
}

export interface LmdbStore extends Store {
	/**
	 * Applies the ops, in one transaction with `otherWrites`. Returns the new revision of each write. Throws at once if it
	 * refuses them, `conflict` if an expectation does not hold. `settled` is called as by `Writer.write`, when the records can
	 * be read.
	 */
	write(ops: readonly CheckedOp[], otherWrites?: Write[], settled?: (durable: boolean) => void): Promise<Rev[]>
}

/**
 * The number of revisions reserved at a time, of 2^53; a restart loses at most as many. The last one of a block is stored
 * before any of the block is used, so no revision is ever used twice.
 */
const revisionBlock = 2 ** 20
const revisionsKey = 'revisions'
/** Keys that a listing reads before yielding to other work. */
const batch = 256

/**
 * Expectations are checked when a write is called, against durable and accepted writes. That is exact because only one
 * process writes the folder. Readers, in contrast, see only durable writes.
 */
export function openStore({ records: table, meta }: Tables, writer: Writer, log?: Logger): LmdbStore {
	let reserved = findRecord(meta, revisionsKey)?.stamp ?? 0
	let lastRev = reserved
	const pending = new TransientMap<string, Pending>()
	const shared = openSharedRecords()
	const watchers = openWatchers<Change<unknown>>(log)

	const currentRev = (key: string): Rev | undefined => {
		const accepted = pending.get(key)
		if (accepted) return accepted.bytes && String(accepted.rev)
		const found = findRecord(table, key)
		return found && String(found.stamp)
	}

	const write: LmdbStore['write'] = (ops, otherWrites = [], settled) => {
		writer.mustBeOpen()
		for (const op of ops) if (op.check || op.expect !== undefined) checkExpected(op, currentRev(op.key))
		const writes = [...otherWrites]
		const changes: Pending[] = []
		const revs: Rev[] = []
		for (const { key, value, check, expect } of ops) {
			if (check) continue
			const rev = ++lastRev
			revs.push(String(rev))
			if (value === undefined && typeof expect !== 'string' && currentRev(key) === undefined && !pending.has(key))
				continue
			const bytes = value === undefined ? undefined : sealValue(key, rev, value)
			writes.push({ table, key, bytes })
			changes.push({ key, rev, bytes })
		}
		if (writes.length === 0) return Promise.resolve(revs)
		const reserving = changes.length > 0 && lastRev > reserved ? lastRev + revisionBlock : reserved
		if (reserving > reserved) writes.push({ table: meta, key: revisionsKey, bytes: sealStamp(revisionsKey, reserving) })
		const written = writer.write(writes, (durable) => {
			for (const change of changes) {
				if (pending.get(change.key) === change) pending.delete(change.key)
				shared.forget(change.key)
				if (durable) watchers.tell(change.key, () => changeOf(table, change))
			}
			for (const { done } of changes) done?.resolve()
			settled?.(durable)
		})
		reserved = reserving
		for (const change of changes) pending.set(change.key, change)
		return written.then(() => revs)
	}

	const read = (key: string): Entry<unknown> | undefined => {
		writer.mustBeOpen()
		return readEntry(table, key)?.entry
	}
	const readShared = (key: string): Entry<unknown> | undefined => {
		writer.mustBeOpen()
		const cached = shared.find(key)
		if (cached) return cached.entry
		const found = readEntry(table, key)
		return shared.keep(key, found?.entry, found?.bytes)
	}
	/** Calls `read` once the writes of `key` accepted so far are durable. Later writes do not delay it any further. */
	const afterPending = <T>(key: string, read: (key: string) => T): T | Promise<T> => {
		const newest = pending.get(key)
		if (!newest) return read(key)
		newest.done ??= Promise.withResolvers()
		return newest.done.promise.then(() => read(key))
	}

	const store = withSingleWrites({
		get: async <T>(key: Key) => afterPending(joinKey(key), read) as Entry<T> | undefined,
		getShared: <T>(key: Key) => afterPending(joinKey(key), readShared) as Entry<T> | undefined,
		list: <T>(prefix: Key, options: ListOptions = {}) =>
			listed({ table, writer }, prefix, options, read) as AsyncIterable<Entry<T>>,
		keys: (prefix, options = {}) => listed({ table, writer }, prefix, options, splitKey),
		commit: async (scope, ops) => write(checkOps(scope, ops)),
		watch: <T>(prefix: Key, changed: (change: Change<T>) => void) =>
			watchers.add(joinKey(prefix), changed as (change: Change<unknown>) => void),
	})
	return { ...store, write }
}

/** The results of `read` for the keys under `prefix`, except undefined ones. */
async function* listed<T>(
	source: { table: Table; writer: Writer },
	prefix: Key,
	{ limit = Number.POSITIVE_INFINITY, ...options }: ListOptions,
	read: (key: string) => T | undefined,
): AsyncGenerator<T> {
	if (limit < 1) return
	let left = limit
	for await (const keys of keyBatches(source, rangeOf(joinKey(prefix), options), Math.min(batch, limit))) {
		for (const key of keys) {
			// One at a time: values may be large, and the next key may be deleted meanwhile.
			const item = read(key)
			if (item === undefined) continue
			yield item
			if (--left === 0) return
		}
	}
}

function rangeOf(prefix: string, { after, reverse = false }: ListOptions): KeyRange {
	const from = after && joinKey(after)
	const end = endOf(prefix)
	if (reverse) return { start: from !== undefined && compareKeys(from, end) < 0 ? from : end, end: prefix, reverse }
	return { start: from !== undefined && compareKeys(from, prefix) >= 0 ? keyAfter(from) : prefix, end }
}

function changeOf(table: Table, { key, rev, bytes }: Pending): Change<unknown> {
	return { key: splitKey(key), ...(bytes && { value: valueOf(table, key, bytes) }), rev: String(rev) }
}
