/**
 * The one writer of a run's events. What is appended while an earlier append is on its way to the disk goes as one with
 * the next, so a busy run costs few writes; a piece of an answer in the making is delivered in its place between them.
 */
import { Fault } from './errors.ts'
import type { NewEvent, Step } from './protocol.ts'
import type { Redactor } from './redactor.ts'
import { redactionOf } from './redactor/of-run.ts'
import { stamp } from './stamp.ts'
import type { EventEnvelope, EventLog, LogEntry, RunJournal } from './store/ports.ts'

/**
 * What the journal holds beside the steps that the loop reads: that a call which must not be made twice had begun, that
 * the run was taken up again after a crash, and that it is paused until a question is answered or another run has ended.
 */
export type JournalStep = Step | { kind: 'begun'; call_id: string } | { kind: 'restart' } | WaitStep

export interface WaitStep {
	kind: 'waits'
	/** The call whose result it waits for. */
	call_id: string
	for: { question_id: string } | { run_id: string }
}

export interface RunLog {
	/** What the log held when this writer took over. */
	readonly journal: RunJournal
	/** For text of this run that goes elsewhere, such as to its model: the run's own events tell of what it takes out. */
	readonly redactor: Redactor
	/**
	 * Appends events and, with the last of them, the step of the journal that they finish. Settles once durable; throws
	 * `fenced` where somebody else writes this run by now, `storage_full` where there is no room, `queue_full` where far
	 * more is appended than the disk takes. After a failure the writer is closed.
	 */
	append(events: NewEvent[], step?: JournalStep): Promise<void>
	/** Delivers an event live without keeping it, behind all that was appended before. Dropped where the disk is far behind. */
	live(event: NewEvent): void
	/**
	 * From now on every append is refused and every live event dropped; what is on its way still settles, and live events
	 * before it are delivered.
	 */
	close(): void
	readonly closed: boolean
}

/**
 * After a crash in the middle of a model call the log does not know how many numbers went to live events that it never
 * kept. Going on this much higher keeps `sequence` strictly increasing for somebody who saw them: at one every 30 ms it
 * would take 50 minutes of one answer to use it up.
 */
const GAP_AFTER_LOST_LIVE_EVENTS = 100_000

/** Appends and live events that wait for the append under way. */
const QUEUE_LIMIT = 10_000
/** Live events give way before appends must. */
const LIVE_LIMIT = 1_000
/** Entries that go as one with the next append. */
const MERGE_LIMIT = 256

type Item =
	| { kind: 'entries'; entries: LogEntry[]; done: PromiseWithResolvers<void> }
	| { kind: 'live'; event: EventEnvelope }

export interface RunLogOptions {
	run: { run_id: string; agent_id: string }
	journal: RunJournal
	log: EventLog
	redactor: Redactor
	deliver: (event: EventEnvelope) => void
}

/** As the event bus sees it. */
export interface RunWriter extends RunLog {
	/** Settles when it is closed and nothing of it is on its way any more. */
	readonly ended: Promise<void>
}

export function openRunLog({ run, journal, log, redactor, deliver }: RunLogOptions): RunWriter {
	let persisted = journal.last
	let sequence = journal.last + (wasStreaming(journal) ? GAP_AFTER_LOST_LIVE_EVENTS : 0)
	let closed = false
	let flushing = false
	const ended = Promise.withResolvers<void>()
	const queue: Item[] = []

	const flush = async (): Promise<void> => {
		// Appends of one turn of the event loop shall go together.
		await Promise.resolve()
		for (let head = queue[0]; head; head = queue[0]) {
			if (head.kind === 'live') {
				queue.shift()
				// Of a closed writer, only what stands before an append that still settles.
				if (!closed || queue.some((item) => item.kind === 'entries')) deliver(head.event)
				continue
			}
			const items: Extract<Item, { kind: 'entries' }>[] = []
			const entries: LogEntry[] = []
			for (let item = queue[0]; item?.kind === 'entries' && entries.length < MERGE_LIMIT; item = queue[0]) {
				items.push(item)
				entries.push(...item.entries)
				queue.shift()
			}
			try {
				await log.append(run.run_id, persisted, entries)
				persisted = entries.at(-1)?.event.sequence ?? persisted
				for (const item of items) item.done.resolve()
			} catch (error) {
				closed = true
				for (const item of [...items, ...queue.splice(0)]) if (item.kind === 'entries') item.done.reject(error)
			}
		}
		flushing = false
		if (closed) ended.resolve()
	}
	const enqueue = (item: Item): void => {
		queue.push(item)
		if (flushing) return
		flushing = true
		// Failures reach those who appended, by their own promises.
		void flush()
	}

	const showLive = (event: NewEvent): void => {
		if (queue.length >= LIVE_LIMIT) return
		enqueue({ kind: 'live', event: stamp(event, run.agent_id, run.run_id, ++sequence) })
	}
	const append: RunLog['append'] = (events, step) => {
		if (closed) return Promise.reject(new Fault('stopped', `the log of run ${run.run_id} is closed`))
		if (queue.length >= QUEUE_LIMIT) {
			closed = true // its flush is under way, and tells when it has ended
			return Promise.reject(
				new Fault('queue_full', `${QUEUE_LIMIT} appends to the log of run ${run.run_id} wait for the disk`),
			)
		}
		const rest = redaction.rest(events)
		if (rest) showLive(rest)
		const told = redaction.told(events, step)
		const entries: LogEntry[] = told.events.map((event) => ({
			event: stamp(event, run.agent_id, run.run_id, ++sequence),
		}))
		const last = entries.at(-1)
		if (!last) return step ? Promise.reject(new TypeError('a step needs an event')) : Promise.resolve()
		if (told.step) last.step = told.step
		const done = Promise.withResolvers<void>()
		enqueue({ kind: 'entries', entries, done })
		return done.promise
	}
	// Where it cannot be written, the next append says so.
	const redaction = redactionOf(redactor, (notice) => void append([notice]).catch(() => {}))

	return {
		journal,
		redactor: redaction.redactor,
		ended: ended.promise,
		append,
		live(event) {
			if (closed) return
			const shown = redaction.live(event)
			if (shown.event) showLive(shown.event)
			if (shown.notices.length > 0) append(shown.notices).catch(() => {})
		},
		close() {
			closed = true
			if (!flushing) ended.resolve()
		},
		get closed() {
			return closed
		},
	}
}

/**
 * Live events come between `model.request` and `model.response`, where nothing else comes but a secret's redaction and
 * the end of a sub-agent.
 */
function wasStreaming({ lastEvent }: RunJournal): boolean {
	const last = lastEvent?.event_type ?? ''
	if (last.startsWith('security.') || last.startsWith('subagent.')) return true
	return last.startsWith('model.') && last !== 'model.response'
}
