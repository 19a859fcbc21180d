/**
 * The event bus over the log: puts events in envelopes, appends them, fans out. The only place that creates sequence numbers.
 *
 * Everything but `model.stream` is durable before any listener receives it. Live events come from the log's own subscription,
 * so on an engine for many machines each gateway receives the others' events in the same way.
 */
import type { Logger } from '../log/log.ts'
import { withoutContext } from '../util/context.ts'
import { TransientMap } from '../util/transient-map.ts'
import type { NewEvent } from '../protocol.ts'
import { openRedactor } from '../redactor/redactor.ts'
import type { Redactor, View } from '../redactor/redactor.ts'
import { noticesOf } from '../redactor/notices.ts'
import { linkToChain } from './chains.ts'
import { inEnvelope, withActor } from './envelope.ts'
import { isPosition, matcher } from '../store/events.ts'
import type { Cursor, EventEnvelope, EventLog, LogFilter, LogPage } from '../store/ports.ts'

/** One event on its way to listeners. */
export interface Delivery {
	/** The position to resume from. For an event that is not stored: the position of the log at that time. */
	cursor: Cursor
	event: EventEnvelope
	/** The event as JSON, made once for all listeners. */
	json(): string
}

/** What a listener receives: events of an agent, of a run, of some types or families; everything if nothing is given. */
export type LiveFilter = Pick<LogFilter, 'agent_id' | 'run_id' | 'agents' | 'types'>

export interface EventBus {
	/** An event of the gateway (`agent` absent) or of an agent outside a run. Settles once durable. */
	emit(event: NewEvent, agent?: string): Promise<void>
	/**
	 * Takes over the writing of one run: closes an earlier writer of this process, waits for its pending appends, and then opens
	 * the new one.
	 */
	openWriter<W extends RunWriter>(run_id: string, open: (parts: WriterParts) => Promise<W>): Promise<W>
	/** The journal of a run, without taking over its log. */
	journal: EventLog['journal']
	/** Calls `receive`, which must not throw, for each event from now on, until the returned function is called. */
	subscribe(filter: LiveFilter, receive: (delivery: Delivery) => void): () => void
	read(filter: LogFilter, after: Cursor | null, limit: number, reverse?: boolean): Promise<LogPage>
	/**
	 * The cursor at which a client resumes. `position`: a cursor, or the id of the last event that the client received. Null if the
	 * log does not contain it.
	 */
	locate(position: string): Promise<Cursor | null>
	/** The newest durable position that listeners have received. */
	head(): Cursor
	prune: EventLog['prune']
}

/** The one writer of a run's events in this process. */
export interface RunWriter {
	/** From now on it refuses appends; pending ones still settle. */
	close(): void
	/** Settles when it is closed and has no pending appends. */
	readonly ended: Promise<void>
}

export interface WriterParts {
	log: EventLog
	redactor: Redactor
	/** Delivers an event live, without storing it. Its sequence comes after that of the writer's last event. */
	deliver(event: EventEnvelope): void
	/** Live events to be delivered, by their `sequence`, between those of the next append; empty if it has failed. */
	deliverBetween(events: EventEnvelope[]): void
}

interface Listener {
	filter: LiveFilter
	receive: (delivery: Delivery) => void
	matches: (event: EventEnvelope) => boolean
	/** Set at once, since a listener may be removed while others receive the same event. */
	isRemoved: boolean
}

/** Outside runs, redactions of one secret in one sink are reported at most once in this time. */
const NOTICE_MS = 60_000

export function openEventBus(log: EventLog, logger: Logger, redactor = openRedactor()): EventBus & Disposable {
	const listeners = new ListenerTable()
	const writers = new TransientMap<string, Promise<RunWriter>>()
	let head = log.head()

	const deliver = (event: EventEnvelope): void => {
		let json: string | undefined
		const delivery: Delivery = { cursor: head, event, json: () => (json ??= JSON.stringify(event)) }
		for (const listener of listeners.of(event)) {
			if (listener.isRemoved) continue
			try {
				listener.receive(delivery)
			} catch (error) {
				logger.error({ err: error, event_type: event.event_type }, 'a listener of events threw')
			}
		}
	}
	/** The log calls its subscribers in the context of some write, which may be unrelated to the event. */
	const deliverOutsideContext = (event: EventEnvelope): void => withoutContext(deliver, event)
	/** By run: live events to be delivered between the events of an append in progress. */
	const pendingLiveEvents = new TransientMap<string, EventEnvelope[]>()
	const deliverLiveBefore = ({ run_id, sequence }: EventEnvelope): void => {
		const pending = run_id === null ? undefined : pendingLiveEvents.get(run_id)
		if (!pending) return
		const later = pending.findIndex((live) => live.sequence > sequence)
		for (const live of pending.splice(0, later < 0 ? pending.length : later)) deliverOutsideContext(live)
		if (pending.length === 0) pendingLiveEvents.delete(run_id as string)
	}
	const stop = log.subscribe((cursor, event) => {
		deliverLiveBefore(event)
		head = cursor
		deliverOutsideContext(event)
	})

	const viewOf = (agent: string | null): View => redactor.of([agent === null ? 'gateway' : { agent }])
	/** Redacts again: data that was written before a secret was first read may contain its value. */
	const redacted = ({ cursor, event }: LogPage['entries'][number]): LogPage['entries'][number] => {
		const payload = viewOf(event.agent_id).data(event.payload, 'event')
		return payload === event.payload ? { cursor, event } : { cursor, event: { ...event, payload } }
	}
	const emit: EventBus['emit'] = async (event, agent) => {
		const payload = viewOf(agent ?? null).data(withActor(event).payload, 'event')
		const envelope = linkToChain(inEnvelope({ ...event, payload }, agent ?? null, null, 0))
		await log.append(null, 0, [{ event: envelope }])
	}
	// Deferred: the redaction may be part of a write, or of a log line. If the notice cannot be written, neither can
	// the data that it reports.
	const notice = noticesOf((event) => setImmediate(() => void emit(event).catch(() => {})), NOTICE_MS)
	const stopNotices = redactor.onRedacted(notice)

	return {
		emit,
		openWriter(run_id, open) {
			const before = writers.get(run_id)
			const takeOver = async (): ReturnType<typeof open> => {
				const old = await before?.catch(() => undefined)
				old?.close()
				await old?.ended
				const deliverBetween = (events: EventEnvelope[]): void => {
					if (events.length > 0) pendingLiveEvents.set(run_id, events)
					else pendingLiveEvents.delete(run_id)
				}
				return open({ log, redactor, deliver, deliverBetween })
			}
			const writer = takeOver()
			writers.set(run_id, writer)
			const forget = (): void => {
				if (writers.get(run_id) === writer) writers.delete(run_id)
			}
			writer.then(({ ended }) => ended.then(forget), forget)
			return writer
		},
		journal: (run) => log.journal(run),
		subscribe(filter, receive) {
			const listener = { filter, receive, matches: matcher(filter), isRemoved: false }
			listeners.add(listener)
			return () => listeners.remove(listener)
		},
		async read(filter, after, limit, reverse) {
			const page = await log.read(filter, after, limit, reverse)
			return { ...page, entries: page.entries.map(redacted) }
		},
		async locate(position) {
			if (isPosition(position, head)) return position
			return log.find(position.toLowerCase())
		},
		head: () => head,
		prune: (before, keep) => log.prune(before, keep),
		[Symbol.dispose]() {
			stopNotices()
			stop()
		},
	}
}

/** Listeners by run or agent, so that an event of one run is not tested against ten thousand listeners of other runs. */
class ListenerTable {
	readonly #byRun = new Map<string | undefined, Set<Listener>>()
	/** Under `undefined`: those of all agents. */
	readonly #byAgent = new Map<string | undefined, Set<Listener>>()

	add(listener: Listener): void {
		const [table, id] = this.#placeOf(listener)
		const listeners = table.get(id) ?? new Set()
		table.set(id, listeners.add(listener))
	}

	remove(listener: Listener): void {
		const [table, id] = this.#placeOf(listener)
		const listeners = table.get(id)
		listener.isRemoved = true
		listeners?.delete(listener)
		if (listeners?.size === 0) table.delete(id)
	}

	/** A copy: a listener that is added during the delivery must not receive this event. */
	of(event: EventEnvelope): Listener[] {
		const { run_id, agent_id } = event
		const found: Listener[] = []
		const add = (listener: Listener): void => void (listener.matches(event) && found.push(listener))
		this.#byAgent.get(undefined)?.forEach(add)
		if (run_id !== null) this.#byRun.get(run_id)?.forEach(add)
		if (agent_id !== null) this.#byAgent.get(agent_id)?.forEach(add)
		return found
	}

	#placeOf({ filter: { run_id, agent_id } }: Listener) {
		return run_id === undefined ? ([this.#byAgent, agent_id] as const) : ([this.#byRun, run_id] as const)
	}
}
