import { setImmediate as turn } from 'node:timers/promises'
import type { Logger } from '../../log/log.ts'
import { encodeValue } from '../codec.ts'
import { behind, compareKeys, endOf, joinKey, splitKey } from '../keys.ts'
import { checkExpected, checkOps, mustHave } from '../ops.ts'
import type { CheckedOp } from '../ops.ts'
import type { Change, Entry, Key, ListOptions, Rev, Store } from '../ports.ts'
import { openWatchers } from '../watchers.ts'
import type { Table, Tables } from './tables.ts'
import { headerBytes, seal, stampOf } from './frame.ts'
import { findRecord, keysOf, valueOf } from './read.ts'
import type { RevisionCounter } from './revisions.ts'
import type { Write, Writer } from './writer.ts'

/** A write that is accepted and not yet durable. Without `bytes` the key is deleted. */
interface Pending {
	rev: number
	bytes: Buffer | undefined
	done: Promise<void>
}

/** Checked writes to records, ready to go into one call of `Writer.write`, in the same turn of the event loop. */
export interface StagedOps {
	writes: Write[]
	/** The new revision of each op. */
	revs: Rev[]
	/** To be called as soon as the writer has accepted `writes`. */
	accepted(): void
	/** To be called when `writes` are durable, or failed. */
	settled(durable: boolean): void
}

export interface LmdbStore extends Store {
	/** Throws `conflict` if an expectation does not hold. */
	stage(ops: readonly CheckedOp[]): StagedOps
}

/** Keys that a listing reads before yielding to other work. */
const listed = 256

/**
 * Expectations are checked when a write is called, against what is durable and what is accepted but not yet durable. That
 * is exact because one process writes the folder. Readers, in contrast, only ever see what is durable.
 */
export function openStore(tables: Tables, writer: Writer, revisions: RevisionCounter, log?: Logger): LmdbStore {
	const table = tables.records
	const pending = new Map<string, Pending>()
	const watchers = openWatchers<Change<unknown>>(log)

	const present = (key: string): Rev | undefined => {
		const waiting = pending.get(key)
		if (waiting) return waiting.bytes && String(waiting.rev)
		const found = findRecord(table, key)
		return found && String(found.stamp)
	}

	const stage = (ops: readonly CheckedOp[]): StagedOps => {
		for (const op of ops) if (op.check || op.expect !== undefined) checkExpected(op, present(op.key))
		const writes: Write[] = []
		const changes: (Pending & { key: string })[] = []
		const revs: Rev[] = []
		const { promise: done, resolve } = Promise.withResolvers<void>()
		for (const { key, value, check } of ops) {
			if (check) continue
			const rev = revisions.next()
			revs.push(String(rev))
			if (value === undefined && present(key) === undefined && !pending.has(key)) continue
			const bytes = value === undefined ? undefined : seal(key, rev, encodeValue(value, headerBytes))
			writes.push({ table, key, ...(bytes && { bytes }) })
			changes.push({ key, rev, bytes, done })
		}
		const covered = writes.length > 0 ? revisions.cover(writes) : undefined
		return {
			writes,
			revs,
			accepted() {
				covered?.()
				for (const change of changes) pending.set(change.key, change)
			},
			settled(durable) {
				for (const change of changes) {
					if (pending.get(change.key) === change) pending.delete(change.key)
					if (durable) watchers.tell(change.key, () => changeOf(table, change))
				}
				resolve()
			},
		}
	}

	const apply = async (ops: readonly CheckedOp[]): Promise<Rev[]> => {
		writer.mustBeOpen()
		const { writes, revs, accepted, settled } = stage(ops)
		if (writes.length === 0) return revs
		const written = writer.write(writes, settled)
		accepted()
		await written
		return revs
	}
	const one = async (op: CheckedOp): Promise<Rev> => (await apply([op]))[0] as Rev

	return {
		stage,
		async get<T>(key: Entry<T>['key']) {
			const joined = joinKey(key)
			// Accepted writes become visible once they are durable; later writes do not delay the reader any further.
			await pending.get(joined)?.done
			writer.mustBeOpen()
			const found = findRecord(table, joined)
			return found && (entryOf(table, joined, found.bytes) as Entry<T>)
		},
		async put(key, value) {
			mustHave(value)
			return one({ key: joinKey(key), value, expect: undefined })
		},
		async create(key, value) {
			mustHave(value)
			return one({ key: joinKey(key), value, expect: null })
		},
		async update(key, value, expect) {
			mustHave(value)
			return one({ key: joinKey(key), value, expect })
		},
		async delete(key, expect) {
			await one({ key: joinKey(key), value: undefined, expect })
		},
		list<T>(prefix: Entry<T>['key'], options: ListOptions = {}) {
			return list({ table, writer }, prefix, options) as AsyncIterable<Entry<T>>
		},
		async commit(scope, ops) {
			return apply(checkOps(scope, ops))
		},
		watch<T>(prefix: Entry<T>['key'], changed: (change: Change<T>) => void) {
			return watchers.add(joinKey(prefix), changed as (change: Change<unknown>) => void)
		},
	}
}

async function* list(
	{ table, writer }: { table: Table; writer: Writer },
	under: Key,
	options: ListOptions,
): AsyncGenerator<Entry<unknown>> {
	const prefix = joinKey(under)
	const { after, reverse = false } = options
	let left = options.limit ?? Number.POSITIVE_INFINITY
	let from = after && joinKey(after)
	while (left > 0) {
		writer.mustBeOpen()
		const wanted = Math.min(listed, left)
		const keys = reverse ? keysBelow(table, prefix, from, wanted) : keysAbove(table, prefix, from, wanted)
		for (const key of keys) {
			// One at a time: the values may be large, and the next one may have been deleted meanwhile.
			writer.mustBeOpen()
			const found = findRecord(table, key)
			if (!found) continue
			yield entryOf(table, key, found.bytes)
			left--
		}
		from = keys.at(-1)
		if (keys.length < wanted) return
		if (left > 0) await turn()
	}
}

function keysAbove(table: Table, prefix: string, after: string | undefined, limit: number): string[] {
	const start = after !== undefined && compareKeys(after, prefix) >= 0 ? behind(after) : prefix
	const end = endOf(prefix)
	return compareKeys(start, end) < 0 ? keysOf(table, { start, end, limit }) : []
}

function keysBelow(table: Table, prefix: string, before: string | undefined, limit: number): string[] {
	const start = before !== undefined && compareKeys(before, endOf(prefix)) < 0 ? before : endOf(prefix)
	if (compareKeys(start, prefix) < 0) return []
	// LMDB's range begins at or below `start`, which is left out here: it is not one of our keys, or was listed before.
	const keys = keysOf(table, { start, end: prefix, limit: limit + 1, reverse: true })
	return keys.filter((key) => key !== start).slice(0, limit)
}

function entryOf(table: Table, key: string, bytes: Buffer): Entry<unknown> {
	return { key: splitKey(key), value: valueOf(table, key, bytes), rev: String(stampOf(bytes)) }
}

function changeOf(table: Table, { key, rev, bytes }: Pending & { key: string }): Change<unknown> {
	return { key: splitKey(key), ...(bytes && { value: valueOf(table, key, bytes) }), rev: String(rev) }
}
