import type { Logger } from '../../../core/log/log.ts'
import { Fault } from '../../../core/errors.ts'
import { within } from '../../../core/util/deadline.ts'
import { decodeValue, encodeValue } from '../../../core/store/codec.ts'
import { joinKey, splitKey } from '../../../core/store/keys.ts'
import { checkExpected, checkOps, withSingleWrites } from '../../../core/store/ops.ts'
import type { CheckedOp } from '../../../core/store/ops.ts'
import type { Change, Entry, Key, ListOptions, Rev, Store } from '../../../core/store/ports.ts'
import { openSharedRecords } from '../../../core/store/shared-records.ts'
import { openWatchers } from '../../../core/store/watchers.ts'
import { PATIENCE_MS, unreachable } from './client.ts'
import type { Client } from './client.ts'
import { UNKNOWN } from './key-index.ts'
import type { KeyIndex } from './key-index.ts'
import type { Lease } from './lease.ts'
import type { OrderedWriter, Outgoing } from './ordered-writer.ts'
import { token, unreadable } from './streams.ts'
import { ValueCache } from './value-cache.ts'

/** A write that is accepted but not yet stored. Without `bytes` it is a deletion. */
interface Pending {
	bytes: Buffer | undefined
	done: Promise<unknown>
}

/** Checked operations. The checks of other writes take them into account until they are stored. */
export interface Prepared {
	/** Stores them. Settles with the new revision of each write. */
	write(): Promise<Rev[]>
	/** Discards them. */
	abandon(): void
}

export interface Records extends Store {
	/** Throws at once if it refuses the operations, `conflict` if an expectation does not hold. */
	prepare(ops: readonly CheckedOp[]): Prepared
	/** Reads the revisions that `prepare` compares. */
	learn(ops: readonly CheckedOp[]): Promise<void>
}

export interface RecordsOptions {
	client: Client
	stream: string
	/** The prefix of the subjects of these records, such as `svc.kv.r.0`. */
	root: string
	writer: OrderedWriter
	index: KeyIndex
	lease: Lease
	/** Seconds after which the message of a deleted key expires. */
	deletedTtlS?: number | undefined
	log?: Logger | undefined
}

/** The message of a deleted key expires after this long; until then it keeps an older write of the key from being stored late. */
export const DELETED_TTL_S = 60
/** Values that a listing reads at the same time. */
const AHEAD = 16
/** Keys that a listing takes from the index at a time. */
const LISTED = 256

/**
 * Records in the stream of state: one subject per key, whose last message is the value; its position is the revision. Expectations
 * are checked here, synchronously, against stored and accepted writes: only the holder of the lease writes, and the servers refuse
 * all others.
 */
export function openRecords(options: RecordsOptions): Records {
	const { client, stream, root, writer, index, lease, deletedTtlS = DELETED_TTL_S, log } = options
	const pending = new Map<string, Pending>()
	const cache = new ValueCache()
	const shared = openSharedRecords()
	const watchers = openWatchers<Change<unknown>>(log)
	const subjectOf = (key: string): string => `${root}.${token(key)}`

	/** The revision of a key. An accepted write has no revision yet: `pending` matches no expectation. */
	const revisionOf = (key: string): Rev | undefined => {
		const write = pending.get(key)
		if (write) return write.bytes && 'pending'
		const seq = index.get(key)
		return seq === undefined ? undefined : String(seq)
	}

	const learn: Records['learn'] = async (ops) => {
		const wanted = ops.filter(({ key, expect }) => typeof expect === 'string' && index.get(key) === UNKNOWN)
		await Promise.all(wanted.map(({ key }) => read(key)))
	}

	/** The value and the position of a stored key. */
	const read = async (key: string): Promise<{ bytes: Buffer; seq: number } | undefined> => {
		for (;;) {
			lease.mustHold()
			const seq = index.get(key)
			if (seq === undefined) return undefined
			const bytes = seq === UNKNOWN ? undefined : cache.get(key, seq)
			if (bytes) return { bytes, seq }
			const found = await client.last(stream, subjectOf(key))
			// Written meanwhile: reads again.
			if (index.get(key) !== seq) continue
			if (seq === UNKNOWN && (!found || found.data.length === 0)) {
				// Deleted before this gateway started, and the message of the deletion has expired since.
				index.delete(key)
				return undefined
			}
			if (!found || (seq !== UNKNOWN && found.seq < seq))
				throw new Fault('store_damaged', `the record ${JSON.stringify(splitKey(key))} is missing in the cluster`)
			if (seq !== UNKNOWN && found.seq !== seq) return { bytes: found.data, seq: found.seq }
			index.set(key, found.seq)
			cache.set(key, found.seq, found.data)
			return { bytes: found.data, seq: found.seq }
		}
	}

	const get = async (key: string): Promise<Entry<unknown> | undefined> => (await getSized(key))?.entry

	const getSized = async (key: string): Promise<{ entry: Entry<unknown>; bytes: number } | undefined> => {
		const write = pending.get(key)
		if (write) await withTimeout(write.done)
		const found = await read(key)
		if (!found) return undefined
		const entry = { key: splitKey(key), value: valueOf(stream, key, found), rev: String(found.seq) }
		return { entry, bytes: found.bytes.length }
	}

	const getShared = (key: string): Entry<unknown> | undefined | Promise<Entry<unknown> | undefined> => {
		lease.mustHold()
		const kept = pending.has(key) ? undefined : shared.find(key)
		return kept ? kept.entry : readShared(key)
	}
	const readShared = async (key: string): Promise<Entry<unknown> | undefined> => {
		const found = await getSized(key)
		// It may have been written meanwhile.
		const isCurrent = index.get(key) === (found && Number(found.entry.rev))
		return isCurrent ? shared.keep(key, found?.entry, found?.bytes) : found?.entry
	}

	const prepare: Records['prepare'] = (ops) => {
		lease.mustHold()
		for (const op of ops) if (op.check || op.expect !== undefined) checkExpected(op, revisionOf(op.key))
		const { promise: done, resolve } = Promise.withResolvers<void>()
		const messages: Outgoing[] = []
		const changes: (Pending & { key: string })[] = []
		/** The index of each write's message in `messages`; -1 if it needs none. */
		const places: number[] = []
		for (const { key, value, check } of ops) {
			if (check) continue
			if (value === undefined && revisionOf(key) === undefined) {
				places.push(-1)
				continue
			}
			const bytes = value === undefined ? undefined : encodeValue(value, 0)
			places.push(messages.length)
			messages.push({
				subject: subjectOf(key),
				data: bytes ?? Buffer.alloc(0),
				...(!bytes && { ttl: `${deletedTtlS}s` }),
			})
			changes.push({ key, bytes, done })
		}
		for (const change of changes) pending.set(change.key, change)
		const settle = (first: number | null): void => {
			for (const [at, change] of changes.entries()) {
				const { key, bytes } = change
				if (first !== null) {
					if (bytes) index.set(key, first + at)
					else index.delete(key)
					if (bytes) cache.set(key, first + at, bytes)
					else cache.delete(key)
				}
				if (pending.get(key) === change) pending.delete(key)
				shared.forget(key)
			}
			for (const [at, { key, bytes }] of first === null ? [] : changes.entries()) {
				const rev = String((first as number) + at)
				watchers.tell(key, () => ({
					key: splitKey(key),
					...(bytes && { value: valueOf(stream, key, { bytes, seq: rev }) }),
					rev,
				}))
			}
			resolve()
		}
		return {
			async write() {
				if (messages.length === 0) return places.map(() => '0')
				let first: number
				try {
					first = await writer.write(messages, settle)
				} catch (error) {
					settle(null) // refused before it was sent
					throw error
				}
				return places.map((at) => (at < 0 ? '0' : String(first + at)))
			},
			abandon: () => settle(null),
		}
	}

	function* keys(prefix: Key, { after, limit: left = Infinity, reverse = false }: ListOptions): Generator<string> {
		const under = joinKey(prefix)
		let from = after && joinKey(after)
		while (left >= 1) {
			lease.mustHold()
			const found = index.range(under, { after: from, reverse, limit: Math.min(LISTED, left) })
			yield* found
			if (found.length < LISTED) return
			left -= found.length
			from = found.at(-1)
		}
	}

	async function* list(prefix: Key, options: ListOptions): AsyncGenerator<Entry<unknown>> {
		const ahead: Promise<Entry<unknown> | undefined>[] = []
		let left = options.limit ?? Infinity
		const waiting = keys(prefix, { ...options, limit: Infinity })
		try {
			for (;;) {
				while (ahead.length < Math.min(AHEAD, left)) {
					const { value, done } = waiting.next()
					if (done) break
					const one = get(value)
					one.catch(() => {})
					ahead.push(one)
				}
				if (ahead.length === 0 || left < 1) return
				const entry = await ahead.shift()
				if (!entry) continue
				yield entry
				left--
			}
		} finally {
			waiting.return(undefined)
		}
	}

	const store = withSingleWrites({
		get: async <T>(key: Key) => (await get(joinKey(key))) as Entry<T> | undefined,
		getShared: <T>(key: Key) => getShared(joinKey(key)) as Entry<T> | undefined | Promise<Entry<T> | undefined>,
		list: <T>(prefix: Key, options: ListOptions = {}) => list(prefix, options) as AsyncIterable<Entry<T>>,
		async *keys(prefix, options = {}) {
			for (const key of keys(prefix, options)) yield splitKey(key)
		},
		async commit(scope, ops) {
			const checked = checkOps(scope, ops)
			if (checked.some(({ key, expect }) => typeof expect === 'string' && index.get(key) === UNKNOWN))
				await learn(checked)
			return withTimeout(prepare(checked).write())
		},
		watch: <T>(prefix: Key, changed: (change: Change<T>) => void) =>
			watchers.add(joinKey(prefix), changed as (change: Change<unknown>) => void),
	})
	return { ...store, prepare, learn }
}

/** Waits for the cluster at most as long as a client should. The write itself is retried until its outcome is known. */
async function withTimeout<T>(work: Promise<T>): Promise<T> {
	try {
		return await within(PATIENCE_MS, 'the cluster', work)
	} catch (error) {
		if (error instanceof Fault) throw error
		work.catch(() => {})
		throw unreachable('the cluster does not answer, so it is not known yet whether this was stored: try again', error)
	}
}

function valueOf(stream: string, key: string, { bytes, seq }: { bytes: Buffer; seq: number | string }): unknown {
	try {
		return decodeValue(bytes, 0, bytes.length)
	} catch (error) {
		throw unreadable(
			`the record ${JSON.stringify(splitKey(key))}, message ${seq} of the stream ${stream},`,
			stream,
			seq,
			error,
		)
	}
}
