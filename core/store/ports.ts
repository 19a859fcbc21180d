/**
 * The ports that all data goes through. The same plugins run on any engine behind them: in memory (tests), LMDB (one
 * machine), later a cluster. `test/contracts/store.ts` is the suite that every engine must pass.
 *
 * Rules that keep an engine for many machines possible:
 * - an acknowledged write is durable: the promise settles only once the write survives `kill -9`;
 * - nothing needs more than one scope in one commit; a scope is the first part of a key;
 * - every call may be repeated with the same arguments after an unknown outcome.
 */

/**
 * Non-empty parts; the first is the scope. Parts hold no NUL and no half of a surrogate pair. The whole is at most 1,000
 * bytes as UTF-8, one more between each two parts.
 */
export type Key = readonly [scope: string, ...rest: string[]]

/** Opaque. Changes with every write of the key, and is never reused for it, also after a delete. */
export type Rev = string

export interface Entry<T> {
	key: Key
	value: T
	rev: Rev
}

/** One write of a commit. `value: undefined` deletes. `expect`: a revision, `null` (must not exist), or absent (whatever is there). */
export interface Op {
	key: Key
	value: unknown
	expect?: Rev | null
}

export interface ListOptions {
	/** At most this many entries; all where absent. */
	limit?: number
	/** Start behind this key (before it, when `reverse`); it need not exist. */
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
 * changes, such as a property that is undefined, is left out or changed here too. Keys sort by their
 * parts, each by its UTF-8 bytes. A reader sees every write acknowledged before it asked, and may see later ones.
 *
 * Every write throws `storage_full` while the disk is too full to take it safely, and `conflict` where an expectation
 * does not hold; then nothing at all was written.
 */
export interface Store {
	get<T>(key: Key): Promise<Entry<T> | undefined>
	put(key: Key, value: unknown): Promise<Rev>
	/** Throws `conflict` where the key exists. */
	create(key: Key, value: unknown): Promise<Rev>
	/** Throws `conflict` where the key does not stand at `expect`. */
	update(key: Key, value: unknown, expect: Rev): Promise<Rev>
	/** Nothing happens where the key is not there, unless `expect` is given. */
	delete(key: Key, expect?: Rev): Promise<void>
	/** Entries whose key starts with the parts of `prefix`, in order. Not a snapshot: writes meanwhile may or may not show. */
	list<T>(prefix: Key, options?: ListOptions): AsyncIterable<Entry<T>>
	/** All or nothing, at most 100 ops, every key in `scope`, no key twice. Answers with the new revision of each op. */
	commit(scope: string, ops: Op[]): Promise<Rev[]>
	/** Every change of a key under `prefix` from now on, in the order in which they became durable, until `stop` is called. */
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

/** One record of the log: an event and, where it finished a step of a run, that step for the run's journal. */
export interface LogEntry {
	event: EventEnvelope
	/** Never delivered to clients; comes back from `journal` only. */
	step?: unknown
}

/** Opaque position in the log, safe as an SSE id. */
export type Cursor = string

export interface LogFilter {
	agent_id?: string
	run_id?: string
	/** Event types; `message.*` stands for a family. Absent: all. */
	types?: readonly string[]
	/** ISO 8601; events at or after `since` and before `until`. */
	since?: string
	until?: string
}

export interface LogPage {
	entries: { cursor: Cursor; event: EventEnvelope }[]
	/**
	 * Where to go on; `null` at the end of the log. A page may hold fewer than `limit` entries, even none, and still have
	 * a `next`: an engine looks at a bounded number of records per page.
	 */
	next: Cursor | null
}

export interface EventLog {
	/**
	 * Appends the events of one run, or of the gateway (`run` null), as one durable whole.
	 *
	 * `expectedLast` is the sequence of the run's last event in the log, 0 for none; where it is not, somebody else
	 * writes this run and `fenced` is thrown. Sequences of `entries` are rising and above `expectedLast`. Neither holds
	 * for the gateway's events.
	 * Subscribers hear, and promises settle, in the order of the cursors; of one append the subscribers first.
	 */
	append(run: string | null, expectedLast: number, entries: LogEntry[]): Promise<Cursor[]>
	/**
	 * Events behind `after` in log order, or before it, newest first, with `reverse`. `after` null: from the respective end.
	 * Never shows an event that subscribers have not heard yet: going from here to live without a gap rests on it.
	 * Throws `invalid_request` for a cursor that is none.
	 */
	read(filter: LogFilter, after: Cursor | null, limit: number, reverse?: boolean): Promise<LogPage>
	/** What a run has in the log: its last sequence (0 for none), last event, and its steps in order. */
	journal(run: string): Promise<RunJournal>
	/**
	 * Every entry appended from now on, in order, once it is durable; until `stop` is called. The event is the appender's
	 * own object, the same for all: it must not be changed, by neither side.
	 */
	subscribe(heard: (cursor: Cursor, event: EventEnvelope) => void): () => void
	/** The newest durable position. */
	head(): Cursor
	/**
	 * Forgets events older than `before` (ISO 8601), but those of runs for which `keep` says so. Answers how many went. What
	 * was appended together goes together, once all of it is old; the newest record stays.
	 */
	prune(before: string, keep: (run: string) => Promise<boolean>): Promise<number>
}

export interface RunJournal {
	last: number
	lastEvent: EventEnvelope | undefined
	steps: unknown[]
}

export interface Job {
	/** Enqueueing the same id again, while it waits or is leased, does nothing. */
	id: string
	body: Record<string, unknown>
}

/**
 * A claimed job, held for as long as this process lives (an engine for many machines extends the lease by itself). It
 * comes back to the queue when its holder died before it was acknowledged.
 */
export interface Lease {
	job: Job
	/**
	 * 1 for the first time that this job was handed out. The count of an attempt is durable no later than whatever its holder
	 * writes to this engine afterwards.
	 */
	attempt: number
	ack(): Promise<void>
	/** Puts the job back, to be handed out again after `delayMs` at the earliest. */
	release(delayMs?: number): Promise<void>
}

export interface RunQueue {
	/** The job may be handed out before this settles: what its holder writes never becomes durable before the job itself. */
	enqueue(job: Job): Promise<void>
	/**
	 * Hands out jobs, oldest first, as long as fewer than `max()` of this claimer's are neither acked nor released. A raised
	 * limit is noticed within a second. Ends with the signal.
	 */
	claim(max: () => number, signal: AbortSignal): AsyncIterable<Lease>
	/** Jobs that wait, also for a delay to pass. */
	waiting(): number
}

/** Copies of everything that an engine keeps, taken while it is at work. */
export interface Snapshots {
	/** Bytes that a copy takes at most. */
	size(): number
	/**
	 * Writes into `folder`, which is there and empty, the files of one moment: all that was acknowledged before the call, and
	 * nothing by half. An engine that is opened there later goes on from that moment. Does not hold up readers or writers.
	 * Throws `unavailable` where nothing can be copied. The signal may break off a long one, which then rejects.
	 */
	take(folder: string, signal?: AbortSignal): Promise<void>
}

/** An opened engine. */
export interface Engine extends AsyncDisposable {
	readonly store: Store
	readonly log: EventLog
	readonly queue: RunQueue
	readonly snapshots: Snapshots
	/** Null while all is well; otherwise why writes are refused, such as a full disk. */
	trouble(): string | null
	/** What it takes and has left on its disk, in bytes; null where that cannot be read. Absent where it has no disk. */
	space?(): { bytes: number; free_bytes: number } | null
}
