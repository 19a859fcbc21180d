/**
 * An in-memory engine for tests, and the simplest implementation of core/store/ports.ts. A write "becomes durable" one microtask
 * after its call, so that callers see the same order of events as with a disk.
 */
import { Fault } from '../../core/errors.ts'
import type { Logger } from '../../core/log/log.ts'
import { untilNoConflict } from '../../core/store/change.ts'
import { decodeValue, encodeValue } from '../../core/store/codec.ts'
import { openDispatcher } from '../../core/store/dispatcher.ts'
import { checkEntries, fenced, matcher, positionOf, timeOf } from '../../core/store/events.ts'
import { compareKeys, isWithin, joinKey, splitKey } from '../../core/store/keys.ts'
import { checkExpected, checkOps, withSingleWrites } from '../../core/store/ops.ts'
import type { CheckedOp } from '../../core/store/ops.ts'
import type { Change, Cursor, Engine, Entry, EventLog, Key, ListOptions } from '../../core/store/ports.ts'
import type { LogEntry, Rev, Store } from '../../core/store/ports.ts'
import { openLogListeners, openWatchers } from '../../core/store/watchers.ts'
import { freeze } from '../../core/util/freeze.ts'

export interface MemoryOptions {
	log?: Logger
	/** Behaves like an engine without transactions across log and records: an append writes its events first, then its records. */
	logFirst?: boolean
}

export function openMemory({ log, logFirst = false }: MemoryOptions = {}): Engine {
	const dispatcher = openDispatcher(memoryBacking(), [], log)
	let closed = false
	const mustBeOpen = (): void => {
		if (closed) throw new Fault('unavailable', 'the store is closed')
	}
	const { store, apply } = memoryStore(mustBeOpen, log)
	return {
		store,
		log: memoryLog(mustBeOpen, { apply, logFirst, ...(log && { log }) }),
		queue: dispatcher.queue,
		snapshots: {
			size: () => 0,
			async take() {
				throw new Fault('unavailable', 'an in-memory store has no files to copy')
			},
		},
		trouble: () => null,
		async [Symbol.asyncDispose]() {
			closed = true
			dispatcher.close()
		},
	}
}

interface StoredRecord {
	rev: Rev
	bytes: Buffer
}

/** Checks and applies all operations at once, or throws. The promise settles once they are "durable". */
type Apply = (ops: readonly CheckedOp[]) => Promise<Rev[]>

function memoryStore(mustBeOpen: () => void, log?: Logger): { store: Store; apply: Apply } {
	const records = new Map<string, StoredRecord>()
	const watchers = openWatchers<Change<unknown>>(log)
	let lastRev = 0

	const apply: Apply = (ops) => {
		mustBeOpen()
		for (const op of ops) checkExpected(op, records.get(op.key)?.rev)
		const writes = ops.filter(({ check }) => !check)
		const encoded = writes.map(({ value }) => (value === undefined ? undefined : encodeValue(value, 0)))
		const changes: { key: string; rev: Rev; bytes: Buffer | undefined }[] = []
		const revs = writes.map(({ key }, index) => {
			const rev = String(++lastRev)
			const bytes = encoded[index]
			if (bytes) records.set(key, { rev, bytes })
			if (bytes || records.delete(key)) changes.push({ key, rev, bytes })
			return rev
		})
		return Promise.resolve().then(() => {
			for (const { key, rev, bytes } of changes)
				watchers.tell(key, () => ({ key: splitKey(key), ...(bytes && { value: valueOf(bytes) }), rev }))
			return revs
		})
	}

	async function* list(prefix: Key, { after, limit, reverse = false }: ListOptions): AsyncGenerator<Entry<unknown>> {
		mustBeOpen()
		const under = joinKey(prefix)
		const from = after && joinKey(after)
		const direction = reverse ? -1 : 1
		const keys = [...records.keys()]
			.filter((key) => isWithin(key, under))
			.filter((key) => from === undefined || compareKeys(key, from) * direction > 0)
			.toSorted((a, b) => compareKeys(a, b) * direction)
		for (const key of keys.slice(0, limit)) {
			const record = records.get(key)
			if (record) yield { key: splitKey(key), value: valueOf(record.bytes), rev: record.rev }
		}
	}

	const get = async <T>(key: Key): Promise<Entry<T> | undefined> => {
		mustBeOpen()
		const record = records.get(joinKey(key))
		return record && { key, value: valueOf(record.bytes) as T, rev: record.rev }
	}
	const store = withSingleWrites({
		get,
		getShared: async <T>(key: Key) => freeze(await get<T>(key)),
		list: <T>(prefix: Key, options: ListOptions = {}) => list(prefix, options) as AsyncIterable<Entry<T>>,
		async *keys(prefix, options = {}) {
			for await (const { key } of list(prefix, options)) yield key
		},
		commit: async (scope, ops) => apply(checkOps(scope, ops)),
		watch: <T>(prefix: Key, changed: (change: Change<T>) => void) =>
			watchers.add(joinKey(prefix), changed as (change: Change<unknown>) => void),
	})
	return { store, apply }
}

/** One append. Its entries have consecutive positions from `first` on. */
interface Appended {
	run: string | null
	first: number
	entries: LogEntry[]
}

function memoryLog(
	mustBeOpen: () => void,
	{ apply, logFirst, log }: { apply: Apply; logFirst: boolean; log?: Logger },
): EventLog {
	let appends: Appended[] = []
	let last = 0
	let durable = 0
	const listeners = openLogListeners(log)
	const runs = new Map<string, LogEntry[]>()
	const addToRun = ({ run, entries }: Appended): void => {
		if (run !== null) runs.set(run, [...(runs.get(run) ?? []), ...entries])
	}

	/** Settles once all earlier appends have been delivered to subscribers. */
	let delivered: Promise<unknown> = Promise.resolve()
	/** Adds the entries to the log at once. Delivers them to subscribers once `written` has settled. */
	const appendNow = (
		run: string | null,
		expectedLast: number,
		entries: LogEntry[],
		written: () => Promise<unknown>,
	): Promise<Cursor[]> => {
		mustBeOpen()
		const current = run === null ? expectedLast : (runs.get(run)?.at(-1)?.event.sequence ?? 0)
		if (run !== null && current !== expectedLast) throw fenced(run, expectedLast, current)
		const encoded = valueOf(encodeValue(entries, 0)) as LogEntry[]
		const settled = written()
		const first = last + 1
		const appended = { run, first, entries: encoded }
		appends.push(appended)
		addToRun(appended)
		last += entries.length
		const before = delivered
		const delivery = (async () => {
			const outcome = await Promise.allSettled([settled, before])
			durable = Math.max(durable, first + entries.length - 1)
			listeners.tell(first, entries)
			if (outcome[0].status === 'rejected') throw outcome[0].reason
			return entries.map((_, index) => String(first + index))
		})()
		delivered = delivery.catch(() => {})
		return delivery
	}

	return {
		async append(run, expectedLast, entries, change) {
			mustBeOpen()
			checkEntries(run, expectedLast, entries)
			if (entries.length === 0) return []
			if (!change) return appendNow(run, expectedLast, entries, async () => {})
			const ops = async (): Promise<CheckedOp[]> => checkOps(change.scope, await change.ops())
			if (!logFirst)
				return untilNoConflict(ops, async (known) => appendNow(run, expectedLast, entries, () => apply(known)))
			// Invalid values are refused before the events are written.
			for (const { value } of await ops()) if (value !== undefined) encodeValue(value, 0)
			return appendNow(run, expectedLast, entries, () => untilNoConflict(ops, async (known) => apply(known)))
		},
		async read(filter, after, limit, reverse = false) {
			mustBeOpen()
			if (!(limit >= 1)) throw new Fault('invalid_request', 'the limit must be at least 1')
			const matches = matcher(filter)
			const from = after === null ? (reverse ? last + 1 : 0) : positionOf(after, durable)
			const numbered = appends.flatMap(({ first, entries }) =>
				entries.map(({ event }, index) => ({ position: first + index, event })),
			)
			const found = (reverse ? numbered.toReversed() : numbered)
				.filter(({ position }) => position <= durable && (reverse ? position < from : position > from))
				.filter(({ event }) => matches(event))
			const entries = found
				.slice(0, limit)
				.map(({ position, event }) => ({ cursor: String(position), event: structuredClone(event) }))
			return { entries, next: found.length > limit ? (entries.at(-1)?.cursor ?? null) : null }
		},
		async find(event_id) {
			mustBeOpen()
			for (const { first, entries } of appends) {
				const at = entries.findIndex(({ event }) => event.event_id === event_id)
				if (at >= 0 && first + at <= durable) return String(first + at)
			}
			return null
		},
		async journal(run) {
			const entries = structuredClone(runs.get(run) ?? [])
			const lastEvent = entries.at(-1)?.event
			const steps = entries.flatMap(({ step }) => (step === undefined ? [] : [step]))
			return { last: lastEvent?.sequence ?? 0, lastEvent, steps }
		},
		subscribe: (listener) => listeners.add(listener),
		head: () => String(durable),
		async prune(before, keep) {
			const time = timeOf(before, Number.NaN)
			if (Number.isNaN(time)) throw new Fault('invalid_request', 'prune needs a time')
			const gone = new Set<Appended>()
			const keptRuns = new Set<string>()
			for (const one of appends.slice(0, -1)) {
				const old = one.entries.every(({ event }) => Date.parse(event.timestamp) < time)
				// A run loses only its oldest events, never one in the middle.
				if (one.run !== null && (!old || (await keep(one.run)))) keptRuns.add(one.run)
				else if (old && !(one.run !== null && keptRuns.has(one.run))) gone.add(one)
			}
			appends = appends.filter((one) => !gone.has(one))
			runs.clear()
			for (const one of appends) addToRun(one)
			return [...gone].reduce((sum, { entries }) => sum + entries.length, 0)
		},
	}
}

function memoryBacking(): Parameters<typeof openDispatcher>[0] {
	const bodies = new Map<number, Buffer>()
	return {
		add(place, { body }) {
			bodies.set(place, encodeValue(body, 0))
			return Promise.resolve()
		},
		async mark() {},
		async remove(place) {
			bodies.delete(place)
		},
		load(place, id) {
			const bytes = bodies.get(place)
			if (!bytes) throw new Fault('store_damaged', `the job ${id} is gone`)
			return { id, body: valueOf(bytes) as Record<string, unknown> }
		},
	}
}

function valueOf(bytes: Buffer): unknown {
	return decodeValue(bytes, 0, bytes.length)
}
