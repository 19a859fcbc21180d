/**
 * The one writer of a run's events. Entries that are appended while an earlier append is being written become part of
 * the next, so a busy run costs few writes. A piece of an unfinished answer is delivered in order between them.
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

/** What the log of a run contains. Grows with each append that has become durable. */
export interface Journal extends RunJournal {
	readonly steps: readonly JournalStep[]
}

export interface RunLog {
	readonly journal: Journal
	/**
	 * For text of this run that goes elsewhere, such as to its model; the run's own events report what it redacts. It knows
	 * the secrets of the run's agent, and of those added by `involve`.
	 */
	readonly redactor: View
	/** From now on also redacts the secrets of another writer, such as the key of a provider, in this run. */
	involve(writer: Writer): void
	/**
	 * Appends events and, with the last of them, the step of the journal that they finish. `change` becomes durable together
	 * with them, and is redacted as they are; see `EventLog.append`. Settles once durable; throws `fenced` if another
	 * writer has taken over this run, `storage_full` on a full disk, `queue_full` if far more is appended than the disk
	 * can write, and what `change` throws. After a failure the writer is closed.
	 */
	append(events: NewEvent[], step?: JournalStep, change?: RecordChange): Promise<void>
	/**
	 * Appends an event that nothing depends on, such as that a model is asked: together with what is appended next, or after
	 * 50 ms. What is appended or sent live after it is delivered after it: a live event waits for it 2 ms at most, and for the
	 * disk. If it cannot be written, the next append fails, too.
	 */
	appendSoon(event: NewEvent): void
	/** Delivers an event live without storing it, after all that was appended before. Dropped if the disk is far behind. */
	live(event: NewEvent): void
	/**
	 * From now on every append is refused and every live event dropped; pending appends still settle, and live events
	 * before them are delivered.
	 */
	close(): void
	readonly closed: boolean
}

/**
 * After a crash in the middle of a model call, the log does not show how many numbers were used for live events, which are
 * not stored. Continuing this much higher keeps `sequence` strictly increasing for clients that saw them: at one every 30 ms it
 * would take 50 minutes of one answer to use up the gap.
 */
const GAP_AFTER_LOST_LIVE_EVENTS = 100_000

/** Appends and live events that wait for the append in progress. */
const QUEUE_LIMIT = 10_000
/** Live events are dropped before appends are refused. */
const LIVE_LIMIT = 1_000
/** Entries that form the next append. */
const MERGE_LIMIT = 256
/** How long `appendSoon` waits. A run whose model answers sooner takes one write less. */
const SOON_MS = 50
/** The same once a live event waits behind it: what follows the first piece of a short answer comes at once. */
const LIVE_SOON_MS = 2

type Item =
	| {
			kind: 'entries'
			entries: LogEntry[]
			step: JournalStep | undefined
			change: RecordChange | undefined
			done: PromiseWithResolvers<void>
			/** It may wait for further entries. */
			isLazy: boolean
	  }
	| { kind: 'live'; event: EventEnvelope }

interface RunIds {
	run_id: string
	agent_id: string
}

/**
 * Takes over the writing of a run: closes an earlier writer of this process, and waits for its pending appends. `fresh`: the
 * log cannot contain anything of the run yet, so it is not read.
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
	// Nothing else writes steps to the log of a run.
	const journal = { ...stored, steps: [...stored.steps] as JournalStep[] }
	let sequence = journal.last + (wasStreaming(journal) ? GAP_AFTER_LOST_LIVE_EVENTS : 0)
	let closed = false
	let flushing = false
	const ended = Promise.withResolvers<void>()
	const queue: Item[] = []

	/** Entries in the queue that must not wait. */
	let urgent = 0
	let soon: NodeJS.Timeout | undefined
	/** `soon` is as short as a live event may wait. */
	let isShort = false
	const isDue = (): boolean => urgent > 0 || soon === undefined || closed

	const flush = async (): Promise<void> => {
		// Appends of one turn of the event loop belong together.
		await Promise.resolve()
		for (let head = queue[0]; head; head = queue[0]) {
			if (head.kind === 'live') {
				queue.shift()
				// For a closed writer, only what comes before an append that still settles.
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
				clearTimeout(soon)
				if (between.length > 0) deliverBetween([])
				for (const item of [...items, ...queue.splice(0)]) if (item.kind === 'entries') item.done.reject(error)
			}
		}
		flushing = false
		if (closed) ended.resolve()
	}
	/** Takes what the next append consists of from the queue, which begins with entries. */
	const takeNext = () => {
		clearTimeout(soon)
		soon = undefined
		const items: Extract<Item, { kind: 'entries' }>[] = []
		const entries: LogEntry[] = []
		const between: EventEnvelope[] = []
		let change: RecordChange | undefined
		let taken = 0
		const lives: EventEnvelope[] = []
		for (const [at, item] of queue.entries()) {
			if (change || entries.length >= MERGE_LIMIT) break
			if (item.kind === 'live') {
				lives.push(item.event)
				continue
			}
			if (!item.isLazy) urgent--
			between.push(...lives.splice(0))
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
		// Failures reach the callers of `append` through their own promises.
		void flush()
	}
	const enqueue = (item: Item): void => {
		queue.push(item)
		if (item.kind === 'entries' && item.isLazy) {
			if (soon === undefined) wait(SOON_MS)
			return
		}
		if (item.kind === 'entries') urgent++
		else if (soon !== undefined && !isShort) {
			clearTimeout(soon)
			wait(LIVE_SOON_MS)
			isShort = true
		}
		start()
	}
	const wait = (ms: number): void => {
		isShort = false
		soon = setTimeout(() => {
			soon = undefined
			start()
		}, ms)
	}

	const showLive = (event: NewEvent): void => {
		if (queue.length >= LIVE_LIMIT) return
		enqueue({ kind: 'live', event: inEnvelope(event, run.agent_id, run.run_id, ++sequence) })
	}
	const append = (events: NewEvent[], step?: JournalStep, change?: RecordChange, isLazy = false): Promise<void> => {
		if (closed) return Promise.reject(new Fault('stopped', `the log of run ${run.run_id} is closed`))
		if (queue.length >= QUEUE_LIMIT) {
			closed = true // its flush is running, and reports when it has ended
			return Promise.reject(
				new Fault('queue_full', `${QUEUE_LIMIT} appends to the log of run ${run.run_id} wait for the disk`),
			)
		}
		const rest = redaction.rest(events)
		if (rest) showLive(rest)
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
	// What it redacts is in the events or the step too, which report it.
	const view = redactor.of(writers).reportingTo(() => {})
	const redacted = ({ scope, ops }: RecordChange): RecordChange => ({
		scope,
		ops: async () => (await ops()).map((op) => redactedOp(view, op)),
	})
	const redaction = redactionOf(redactor.of(writers), (notice) => unawaited(append([notice])))

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
			if (shown.event) showLive(shown.event)
			if (shown.notices.length > 0) unawaited(append(shown.notices))
		},
		close() {
			closed = true
			if (queue.length > 0) start()
			else if (!flushing) ended.resolve()
		},
		get closed() {
			return closed
		},
	}
}

/**
 * Live events come between `model.request` and `model.response`, where the only other events are redactions and
 * the end of a sub-agent.
 */
function wasStreaming({ lastEvent }: RunJournal): boolean {
	const last = lastEvent?.event_type ?? ''
	if (last.startsWith('security.') || last.startsWith('subagent.')) return true
	return last.startsWith('model.') && last !== 'model.response'
}

/** For an append that is not awaited: if it cannot be written, the next one fails too, and that one is awaited. */
export function unawaited(appended: Promise<void>): void {
	appended.catch(() => {})
}
