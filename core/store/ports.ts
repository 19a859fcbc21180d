/**
 * The ports through which all data passes. The same plugins run on any engine behind them: LMDB (one machine), an engine
 * from a plugin's folder (core/engines), and in memory for tests. Every engine must pass the suite `test/contracts/store.ts`.
 *
 * Rules that keep an engine for many machines possible:
 * - an acknowledged write is durable: the promise settles only once the write survives `kill -9`;
 * - nothing needs more than one scope in one commit; a scope is the first part of a key;
 * - every call may be repeated with the same arguments after an unknown outcome.
 */
import type { Fault } from '../errors.ts'
import type { FormatMark } from './format.ts'

/**
 * Non-empty parts; the first is the scope. Parts contain no NUL and no half of a surrogate pair. At most 1,000 bytes of UTF-8
 * in all, with one byte between each two parts.
 */
export type Key = readonly [scope: string, ...rest: string[]]

/** Opaque. Changes with every write of the key, and is never reused for it, even after a delete. */
export type Rev = string

export interface Entry<T> {
	key: Key
	value: T
	rev: Rev
}

/** One part of a commit. */
export type Op = Write | Check

/** `value: undefined` deletes. `expect`: a revision, `null` (must not exist), or absent (any state). */
export interface Write {
	key: Key
	value: unknown
	expect?: Rev | null
	check?: never
}

/**
 * Writes nothing: the commit fails unless the key has the revision `expect`, does not exist (`null`), or, if `expect` is
 * absent, exists. An engine that can only compare revisions reads that of the key first.
 */
export interface Check {
	key: Key
	check: true
	expect?: Rev | null
	value?: never
}

export interface ListOptions {
	/** At most this many entries; all if absent. */
	limit?: number
	/** Start after this key (with `reverse`, before it); it need not exist. */
	after?: Key
	/** Highest key first. */
	reverse?: boolean
}

export interface Change<T> {
	key: Key
	/** Absent when the key was deleted. */
	value?: T
	rev: Rev
}

/**
 * Records: plain data (JSON types, plus Uint8Array), at most 8 MiB each (`payload_too_large`). What JSON leaves out or
 * changes, such as a property that is undefined, is omitted or changed here too. Keys sort by their
 * parts, each by its UTF-8 bytes. A reader sees every write acknowledged before it asked, and may see later ones.
 *
 * Every write throws `storage_full` while the disk is too full to accept it safely, and `conflict` if an expectation
 * does not hold; then nothing was written.
 */
export interface Store {
	get<T>(key: Key): Promise<Entry<T> | undefined>
	/**
	 * As `get`, for a record that is read far more often than written. The engine may cache it. All readers share it, so it must
	 * not be changed, and may be frozen. Returns a cached entry itself, not a promise.
	 */
	getShared<T>(key: Key): Entry<T> | undefined | Promise<Entry<T> | undefined>
	put(key: Key, value: unknown): Promise<Rev>
	/** Throws `conflict` if the key exists. */
	create(key: Key, value: unknown): Promise<Rev>
	/** Throws `conflict` if the key does not have the revision `expect`. */
	update(key: Key, value: unknown, expect: Rev): Promise<Rev>
	/** Does nothing if the key does not exist, unless `expect` is given. */
	delete(key: Key, expect?: Rev): Promise<void>
	/** Entries whose key starts with the parts of `prefix`, in order. Not a snapshot: concurrent writes may or may not show. */
	list<T>(prefix: Key, options?: ListOptions): AsyncIterable<Entry<T>>
	/** The keys that `list` would find. Nothing is decoded, so the keys of damaged records appear too. */
	keys(prefix: Key, options?: ListOptions): AsyncIterable<Key>
	/**
	 * All or nothing, at most 100 writes, every key in `scope`, no key twice. Returns the new revision of each write, in
	 * their order.
	 */
	commit(scope: string, ops: Op[]): Promise<Rev[]>
	/** Reports every change of a key under `prefix` from now on, in the order in which they become durable, until the returned function is called. */
	watch<T>(prefix: Key, changed: (change: Change<T>) => void): () => void
}

/** What clients see of something that happened; the names are the wire's. */
export interface EventEnvelope {
	event_id: string
	timestamp: string
	agent_id: string | null
	run_id: string | null
	/** Strictly increasing within a run, starting at 1; 0 for events of the gateway itself. */
	sequence: number
	event_type: string
	payload: Record<string, unknown>
}

/** One record of the log: an event and, if it finished a step of a run, that step for the run's journal. */
export interface LogEntry {
	event: EventEnvelope
	/** Never delivered to clients; only `journal` returns it. */
	step?: unknown
}

/** Writes to records that follow from an append to the log. */
export interface RecordChange {
	scope: string
	/**
	 * Reads the records and returns the writes, as for `Store.commit`; an empty list changes nothing. Each should expect the
	 * revision that was read. Called again after a conflict, so it must have no side effects.
	 */
	ops(): Promise<Op[]>
}

/** Opaque position in the log, safe as an SSE id. */
export type Cursor = string

export interface LogFilter {
	agent_id?: string
	run_id?: string
	/** Only events of agents whose names match one of these patterns, and none of the gateway. */
	agents?: readonly string[]
	/** Event types; `message.*` matches a family. Absent: all. */
	types?: readonly string[]
	/** The `id` of `payload.actor`, or its `kind` if it has no id. */
	actor?: string
	/** ISO 8601; events at or after `since` and before `until`. */
	since?: string
	until?: string
}

export interface LogPage {
	entries: { cursor: Cursor; event: EventEnvelope }[]
	/**
	 * Where the next page begins; `null` at the end of the log. A page may hold fewer than `limit` entries, even none, and
	 * still have a `next`: an engine reads a bounded number of records per page.
	 */
	next: Cursor | null
}

export interface EventLog {
	/**
	 * Appends the events of one run, or of the gateway (`run` null), as one durable whole.
	 *
	 * `expectedLast` must be the sequence of the run's last event in the log, 0 for none. Otherwise another writer has written
	 * this run, and `fenced` is thrown. Sequences of `entries` rise, and are above `expectedLast`. Neither applies to the
	 * gateway's events. Without entries nothing is written.
	 *
	 * `change` becomes durable together with the events. If `ops` throws, or `conflict` persists for 100 attempts, nothing is
	 * appended. Only an engine without transactions across log and records writes the events first: then `conflict`, or a
	 * crash, can leave the records behind the log, and the run's next writer must compare them.
	 *
	 * Subscribers are called, and promises settle, in the order of the cursors. For one append the subscribers are called first;
	 * by then the changed records can be read.
	 */
	append(run: string | null, expectedLast: number, entries: LogEntry[], change?: RecordChange): Promise<Cursor[]>
	/**
	 * Events after `after` in log order; with `reverse` those before it, newest first. `after` null: from the respective end.
	 * Never returns an event that subscribers have not received yet, so that a reader can continue live without a gap.
	 * Throws `invalid_request` for an invalid cursor.
	 */
	read(filter: LogFilter, after: Cursor | null, limit: number, reverse?: boolean): Promise<LogPage>
	/** The position of the event with this id; null if the log does not contain it. Reads a bounded number of records. */
	find(event_id: string): Promise<Cursor | null>
	/** The log of one run: its last sequence (0 for none), last event, and its steps in order. */
	journal(run: string): Promise<RunJournal>
	/**
	 * Reports every entry appended from now on, in order, once it is durable, until the returned function is called. The event
	 * is the appender's own object, shared by all: neither side may change it.
	 */
	subscribe(listener: (cursor: Cursor, event: EventEnvelope) => void): () => void
	/** The newest durable position. */
	head(): Cursor
	/**
	 * Removes events older than `before` (ISO 8601), except those of runs for which `keep` is true. Returns how many. What was
	 * appended together is removed together, once all of it is old; the newest record stays.
	 */
	prune(before: string, keep: (run: string) => Promise<boolean>): Promise<number>
}

export interface RunJournal {
	readonly last: number
	readonly lastEvent: EventEnvelope | undefined
	readonly steps: readonly unknown[]
}

export interface Job {
	/** Enqueueing the same id again, while it waits or is leased, does nothing. */
	id: string
	body: Record<string, unknown>
}

/**
 * A claimed job, held for as long as this process lives (an engine for many machines extends the lease itself). It
 * returns to the queue if its holder dies before it is acknowledged.
 */
export interface Lease {
	job: Job
	/**
	 * 1 when this job is handed out for the first time. The count becomes durable no later than anything that the holder writes
	 * to this engine afterwards.
	 */
	attempt: number
	/** Counts the attempt, unless `claim` did. To be called before the holder writes anything about the job. */
	begin(): void
	ack(): Promise<void>
	/** Puts the job back, to be handed out again after `delayMs` at the earliest. */
	release(delayMs?: number): Promise<void>
}

export interface RunQueue {
	/** The job may be handed out before this settles: what its holder writes never becomes durable before the job itself. */
	enqueue(job: Job): Promise<void>
	/**
	 * Hands out jobs, oldest first, while this claimer holds fewer than `max()` leases that are neither acked nor released. A
	 * raised limit is noticed within a second. Ends with the signal. `isCounted`: false if a lease may wait before work begins;
	 * then `begin` counts the attempt.
	 */
	claim(max: () => number, signal: AbortSignal, isCounted?: boolean): AsyncIterable<Lease>
	/** Jobs that wait, including delayed ones. */
	waiting(): number
}

/** Copies of everything that an engine stores, taken while it is in use. */
export interface Snapshots {
	/** The maximum size of a copy in bytes. */
	size(): number
	/**
	 * Writes a consistent copy into `folder`, which must exist and be empty: all writes acknowledged before the call, and no
	 * partial ones. An engine can be opened there later. Does not block readers or writers. Throws `unavailable` if nothing can
	 * be copied. Rejects if the signal cancels it.
	 */
	take(folder: string, signal?: AbortSignal): Promise<void>
}

/** An opened engine. */
export interface Engine extends AsyncDisposable {
	readonly store: Store
	readonly log: EventLog
	readonly queue: RunQueue
	readonly snapshots: Snapshots
	/** Absent if its data does not outlive it. */
	readonly contents?: Contents
	/** Null while writes are accepted; otherwise why not, such as a full disk. */
	trouble(): string | null
	/**
	 * For an engine that several gateways share, one at a time: settles when another one has taken over, or may have. From then
	 * on everything is refused, and this process must start over.
	 */
	readonly lost?: Promise<Fault>
	/** For such an engine: the time for which this process is the working gateway. */
	readonly tenure?: Tenure
	/** For such an engine: the gateways that answer at this moment, this one included. Takes most of a second. */
	members?(): Promise<ClusterMember[]>
	/**
	 * For such an engine: whether data of an older format may be upgraded now, so that gateways of an older version can no longer
	 * read it. Throws `config_invalid` or `unavailable`, with what to do, if this version can neither keep the format nor change it yet.
	 */
	mayUpgrade?(): Promise<boolean>
	/** Where its data is, if that is not on this machine. */
	remote?(): ClusterStatus
	/** The bytes that it uses and that are free on its disk; null if they cannot be read. Absent if it has no disk. */
	space?(): { bytes: number; free_bytes: number } | null
	/** Absent if its data does not outlive it. */
	readonly format?: DataFormat
}

/** For copying everything into another engine. Nothing may be written meanwhile. */
export interface Contents {
	/** The scopes that hold records, each once. */
	scopes(): AsyncIterable<string>
	/** The log from its beginning, an append at a time. */
	appends(): AsyncIterable<{ run: string | null; entries: readonly LogEntry[] }>
	/** Jobs that were not acknowledged, the oldest first. */
	jobs(): AsyncIterable<Job>
}

/** The time for which one gateway works on data that several share. */
export interface Tenure {
	/** Unique. */
	readonly id: string
	/** Publishes this gateway's address to the waiting ones, until the next call. */
	advertise(address: GatewayAddress): void
}

/** Where waiting gateways reach the working one. */
export interface GatewayAddress {
	/** Such as `http://g1:3000`. */
	main: string
	/** Null if it does not listen there. */
	legacy: string | null
	/** Derived from the tenure's id with the key of the installation: if it matches, both gateways have the same key. */
	key_check: string
}

/** The lease of the working gateway, as a waiting gateway has read it. */
export interface ObservedLease {
	/** Of the tenure. */
	id: string
	/** For people: its machine and process. */
	holder: string
	/** Absent until it serves requests. */
	address?: GatewayAddress | undefined
	/** A renewal of the lease was observed. */
	isAlive: boolean
}

/** A gateway on data that several share. */
export interface ClusterMember {
	/** For people: its machine and process. */
	name: string
	/** Of its program, such as `0.2.0`. */
	version: string
	/** The newest format that it reads. */
	format: number
	/** False while it waits. */
	works: boolean
}

/** The names of engines whose data is not on this machine. The plugin that provides one adds its name, by declaration merging. */
export interface RemoteEngines {}

/** The last known state, at most a few seconds old. */
export interface ClusterStatus {
	engine: keyof RemoteEngines
	/** The engine, for people. */
	title: string
	/** `host:port` of each server that is known. */
	servers: string[]
	/** The server that accepts the writes of records; null during an election. */
	leader: string | null
}

/** The format of the data. A new engine has that of this program; data of an older format opens unchanged. */
export interface DataFormat {
	mark(): FormatMark
	/** Settles once it is durable. */
	change(mark: FormatMark): Promise<void>
}
