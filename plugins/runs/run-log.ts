/**
 * The only writer of a run's events. Appends during a write are merged into the next write, so a busy run costs few writes. Live
 * events, such as pieces of an answer, are delivered in order between the stored ones.
 */
import { Fault } from '../../core/errors.ts'
import type { NewEvent } from '../../core/protocol.ts'
import type { View, Writer } from '../../core/redactor/redactor.ts'
import type { EventBus, RunWriter, WriterParts } from '../../core/events/event-bus.ts'
import { inEnvelope, withActor } from '../../core/events/envelope.ts'
import type { EventEnvelope, LogEntry, RecordChange, RunJournal } from '../../core/store/ports.ts'
import { redactedOp } from '../../core/store/redacting.ts'
import type { JournalStep } from './journal-step.ts'
import { redactionOf } from './run-redaction.ts'

/** The content of a run's log: all appends that are durable. */
export interface Journal extends RunJournal {
	readonly steps: readonly JournalStep[]
}

export interface RunLog {
	readonly journal: Journal
	/**
	 * For text of this run that leaves it, such as for its model; events of the run report the redactions. Redacts the secrets of
	 * the run's agent, and of the writers added by `involve`.
	 */
	readonly redactor: View
	/** Also redacts the secrets of another writer in this run from now on, such as the key of a provider. */
	involve(writer: Writer): void
	/**
	 * Appends events and, with the last of them, the step of the journal that they finish. `change` becomes durable together
	 * with them, and is redacted like them; see `EventLog.append`. Settles once durable. Throws `fenced` if another writer has
	 * taken over this run, `storage_full` on a full disk, `queue_full` if appends arrive much faster than the disk writes them,
	 * and the errors of `change`. After a failure the log is closed.
	 */
	append(events: NewEvent[], step?: JournalStep, change?: RecordChange): Promise<void>
	/**
	 * Appends an event that nothing depends on, such as `model.request`: together with the next append, or after 50 ms. The order
	 * of events is kept: a live event after it makes it be written within 2 ms, and waits for that write. If the write fails, the
	 * next append fails too.
	 */
	appendSoon(event: NewEvent): void
	/** Delivers an event live, after all earlier appends, without storing it. Dropped if the disk is far behind. */
	live(event: NewEvent): void
	/** Refuses later appends, and drops later live events. Pending appends still settle, and live events before them are delivered. */
	close(): void
	isClosed(): boolean
}

/**
 * Added to `sequence` after a crash during a model call: the numbers of live events are not stored, and `sequence` must increase
 * for clients that saw them. At one live event per 30 ms, an answer of 50 minutes would use up the gap.
 */
const GAP_AFTER_LOST_LIVE_EVENTS = 100_000

/** Appends and live events that wait for the write in progress. */
const QUEUE_LIMIT = 10_000
/** Live events are dropped before appends are refused. */
const LIVE_LIMIT = 1_000
/** Entries that are merged into one write. */
const MERGE_LIMIT = 256
/** Delay of `appendSoon`. If the model answers within it, the run needs one write less. */
const LAZY_MS = 50
/** The delay once a live event is queued: the first piece of an answer must not wait longer. */
const LIVE_LAZY_MS = 2

type Item =
	| {
			kind: 'entries'
			entries: LogEntry[]
			step: JournalStep | undefined
			change: RecordChange | undefined
			done: PromiseWithResolvers<void>
			/** Appended by `appendSoon`. */
			isLazy: boolean
	  }
	| { kind: 'live'; event: EventEnvelope }

interface RunIds {
	run_id: string
	agent_id: string
}

/**
 * Opens the log of a run for writing: closes the previous writer in this process, and waits for its pending appends. `fresh`: the
 * run is new, so its journal is not read.
 */
export function openRun(events: Pick<EventBus, 'openWriter'>, run: RunIds, fresh = false): Promise<RunLog> {
	return events.openWriter(run.run_id, async (parts) =>
		runLogOf(run, fresh ? { last: 0, lastEvent: undefined, steps: [] } : await parts.log.journal(run.run_id), parts),
	)
}

function runLogOf(
	run: RunIds,
	stored: RunJournal,
	{ log, redactor, deliver, deliverBetween }: WriterParts,
): RunLog & RunWriter {
	// Only this module writes steps to the log of a run.
	const journal = { ...stored, steps: [...stored.steps] as JournalStep[] }
	let sequence = journal.last + (wasStreaming(journal) ? GAP_AFTER_LOST_LIVE_EVENTS : 0)
	let closed = false
	let flushing = false
	const ended = Promise.withResolvers<void>()
	const queue: Item[] = []

	/** Queued appends that are not lazy. */
	let urgent = 0
	/** Starts the write of lazy appends. */
	let lazyTimer: NodeJS.Timeout | undefined
	/** `lazyTimer` runs for `LIVE_LAZY_MS`. */
	let isShort = false
	const isDue = (): boolean => urgent > 0 || lazyTimer === undefined || closed

	const flush = async (): Promise<void> => {
		// Merges the appends of one turn of the event loop.
		await Promise.resolve()
		for (let head = queue[0]; head; head = queue[0]) {
			if (head.kind === 'live') {
				queue.shift()
				// After `close`, only live events before a pending append are delivered.
				if (!closed || queue.some((item) => item.kind === 'entries')) deliver(head.event)
				continue
			}
			if (!isDue()) break
			const { items, entries, between, change } = takeNext()
			try {
				if (between.length > 0) deliverBetween(between)
				await log.append(run.run_id, journal.last, entries, change)
				journal.lastEvent = entries.at(-1)?.event
				journal.last = journal.lastEvent?.sequence ?? journal.last
				for (const { step, done } of items) {
					if (step) journal.steps.push(step)
					done.resolve()
				}
			} catch (error) {
				closed = true
				clearTimeout(lazyTimer)
				if (between.length > 0) deliverBetween([])
				for (const item of [...items, ...queue.splice(0)]) if (item.kind === 'entries') item.done.reject(error)
			}
		}
		flushing = false
		if (closed) ended.resolve()
	}
	/** Takes what the next append consists of from the queue, which begins with entries. */
	const takeNext = () => {
		clearTimeout(lazyTimer)
		lazyTimer = undefined
		const items: Extract<Item, { kind: 'entries' }>[] = []
		const entries: LogEntry[] = []
		const between: EventEnvelope[] = []
		let change: RecordChange | undefined
		let taken = 0
		const pendingLive: EventEnvelope[] = []
		for (const [at, item] of queue.entries()) {
			if (change || entries.length >= MERGE_LIMIT) break
			if (item.kind === 'live') {
				pendingLive.push(item.event)
				continue
			}
			if (!item.isLazy) urgent--
			between.push(...pendingLive.splice(0))
			items.push(item)
			entries.push(...item.entries)
			change = item.change
			taken = at + 1
		}
		queue.splice(0, taken)
		return { items, entries, between, change }
	}
	const start = (): void => {
		if (flushing) return
		flushing = true
		// Errors reject the promises of the appends.
		void flush()
	}
	const enqueue = (item: Item): void => {
		queue.push(item)
		if (item.kind === 'entries' && item.isLazy) {
			if (lazyTimer === undefined) startTimer(LAZY_MS)
			return
		}
		if (item.kind === 'entries') urgent++
		else if (lazyTimer !== undefined && !isShort) {
			clearTimeout(lazyTimer)
			startTimer(LIVE_LAZY_MS)
			isShort = true
		}
		start()
	}
	const startTimer = (ms: number): void => {
		isShort = false
		lazyTimer = setTimeout(() => {
			lazyTimer = undefined
			start()
		}, ms)
	}

	const enqueueLive = (event: NewEvent): void => {
		if (queue.length >= LIVE_LIMIT) return
		enqueue({ kind: 'live', event: inEnvelope(event, run.agent_id, run.run_id, ++sequence) })
	}
	const append = (events: NewEvent[], step?: JournalStep, change?: RecordChange, isLazy = false): Promise<void> => {
		if (closed) return Promise.reject(new Fault('stopped', `the log of run ${run.run_id} is closed`))
		if (queue.length >= QUEUE_LIMIT) {
			closed = true // `flush` is running, and resolves `ended`
			return Promise.reject(
				new Fault('queue_full', `${QUEUE_LIMIT} appends to the log of run ${run.run_id} wait for the disk`),
			)
		}
		const rest = redaction.rest(events)
		if (rest) enqueueLive(rest)
		const caused = events.map((event) => withActor(event, run.agent_id))
		const safe = redaction.redacted(caused, step)
		const entries: LogEntry[] = safe.events.map((event) => ({
			event: inEnvelope(event, run.agent_id, run.run_id, ++sequence),
		}))
		const last = entries.at(-1)
		if (!last) return step || change ? Promise.reject(new TypeError('a step needs an event')) : Promise.resolve()
		if (safe.step) last.step = safe.step
		const done = Promise.withResolvers<void>()
		enqueue({ kind: 'entries', entries, step, change: change && redacted(change), done, isLazy })
		return done.promise
	}
	const writers: Writer[] = [{ agent: run.agent_id }]
	// No reports: the events or the step contain the same secrets, and report them.
	const view = redactor.of(writers).reportingTo(() => {})
	const redacted = ({ scope, ops }: RecordChange): RecordChange => ({
		scope,
		ops: async () => (await ops()).map((op) => redactedOp(view, op)),
	})
	const redaction = redactionOf(redactor.of(writers), (notice) => unawaited(append([notice])))

	// Without accessors: V8 creates those of an object literal in the old space, where they would keep the run until a full collection.
	return {
		journal,
		redactor: redaction.view,
		involve: (writer) => void writers.push(writer),
		ended: ended.promise,
		append: (events, step, change) => append(events, step, change),
		appendSoon: (event) => unawaited(append([event], undefined, undefined, true)),
		live(event) {
			if (closed) return
			const shown = redaction.live(event)
			if (shown.event) enqueueLive(shown.event)
			if (shown.notices.length > 0) unawaited(append(shown.notices))
		},
		close() {
			closed = true
			if (queue.length > 0) start()
			else if (!flushing) ended.resolve()
		},
		isClosed: () => closed,
	}
}

/**
 * Whether live events may follow the last stored event. They are sent between `model.request` and `model.response`, where the
 * only other stored events are redactions and the end of a sub-agent.
 */
function wasStreaming({ lastEvent }: RunJournal): boolean {
	const last = lastEvent?.event_type ?? ''
	if (last.startsWith('security.') || last.startsWith('subagent.')) return true
	return last.startsWith('model.') && last !== 'model.response'
}

/** Ignores the error of an append: the next append fails too, and is awaited. */
export function unawaited(appended: Promise<void>): void {
	appended.catch(() => {})
}
