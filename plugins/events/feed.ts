import type { Delivery, EventBus, LiveFilter } from '../../core/events/event-bus.ts'
import { chunk } from '../shared/sse.ts'
import type { Connection } from '../shared/sse.ts'
import type { Cursor, EventEnvelope } from '../../core/store/ports.ts'

/** A client with more unread bytes is no longer live: it gets events from the log once it has read them. */
const BACKLOG_LIMIT = 256 * 1024
/** Characters in one block of events. A block exceeds the limit by at most one event. */
const BLOCK_LIMIT = 256 * 1024
/** Events buffered for a reader while a page is read. After more, it reads another page. */
const BUFFER_LIMIT = 1000

/** A client of a feed. */
export interface FeedReader {
	readonly connection: Connection
	/** All events of the filter up to this position have been written. */
	cursor: Cursor
}

/** An event in the form in which its readers get it. */
export interface Frame {
	event_id: string
	text: string
	/** The streams of the readers end with this event. */
	isLast: boolean
}

/** Events that arrived while a page was read for a reader, or before the reader had a connection. */
export interface Buffered {
	frames: Frame[]
	/** Events were dropped. */
	overflowed: boolean
}

export interface FeedOptions {
	/** Unique among the open feeds. */
	key: string
	filter: LiveFilter
	events: EventBus
	/** The frame of a live event, for readers of this feed. */
	textOf: (delivery: Delivery) => string
	/** The JSON of an event from the log. */
	jsonOf: (event: EventEnvelope) => string
	/** Whether the streams of this feed end with this event. */
	isLast: (event: EventEnvelope) => boolean
	/** Called once the last event has been written. */
	finished: (reader: FeedReader) => void
	/** Called with events to write: call `flush` before the next turn of the event loop. */
	dirty: (feed: EventFeed) => void
	/** Called with a reader that is no longer live and must catch up from its cursor. */
	behind: (reader: FeedReader) => void
}

/** One filter with one subscription. Passes events to the live readers; the others read the log until they have caught up. */
export class EventFeed {
	readonly options: FeedOptions
	readonly readers = new Set<FeedReader>()
	readonly #live = new Set<FeedReader>()
	/** By reader, or by another object before the reader has a connection. */
	readonly #joining = new Map<object, Buffered>()
	readonly #unsubscribe: () => void
	#pending: string[] = []
	#length = 0
	#cursor: Cursor = ''
	#isOver = false

	constructor(options: FeedOptions) {
		this.options = options
		this.#unsubscribe = options.events.subscribe(options.filter, (delivery) => this.#receive(delivery))
	}

	close(): void {
		this.#unsubscribe()
	}

	remove(reader: FeedReader): void {
		this.readers.delete(reader)
		this.#live.delete(reader)
		this.#joining.delete(reader)
	}

	get isIdle(): boolean {
		return this.readers.size === 0 && this.#joining.size === 0
	}

	/** Buffers events for this reader until `buffered` is called. */
	listen(reader: object): void {
		this.#joining.set(reader, { frames: [], overflowed: false })
	}

	buffered(reader: object): Buffered {
		const buffered = this.#joining.get(reader) ?? { frames: [], overflowed: true }
		this.#joining.delete(reader)
		return buffered
	}

	/** Passes new events to this reader from now on. `missing`: the events between its cursor and now. */
	goLive(reader: FeedReader, missing: readonly Frame[]): void {
		// Pending events arrived before now, so they are for the readers that are live already.
		this.flush()
		if (missing.length > 0) reader.connection.write(chunk(missing.map(({ text }) => text).join('')))
		if (missing.some(({ isLast }) => isLast)) return this.options.finished(reader)
		reader.cursor = this.options.events.head()
		this.#live.add(reader)
	}

	/** Writes the pending events to every live reader. Readers with too many unread bytes are no longer live. */
	flush(): void {
		if (this.#length === 0) return
		const block = chunk(this.#pending.join(''))
		this.#pending = []
		this.#length = 0
		for (const reader of this.#live) {
			if (reader.connection.backlog > BACKLOG_LIMIT) {
				this.#live.delete(reader)
				this.options.behind(reader)
				continue
			}
			reader.connection.write(block)
			reader.cursor = this.#cursor
			if (this.#isOver) this.options.finished(reader)
		}
	}

	#receive(delivery: Delivery): void {
		if (this.#live.size === 0 && this.#joining.size === 0) return
		const text = this.options.textOf(delivery)
		const isLast = this.options.isLast(delivery.event)
		for (const buffered of this.#joining.values()) {
			if (buffered.frames.length < BUFFER_LIMIT)
				buffered.frames.push({ event_id: delivery.event.event_id, text, isLast })
			else buffered.overflowed = true
		}
		if (this.#live.size === 0) return
		if (this.#length === 0) this.options.dirty(this)
		this.#pending.push(text)
		this.#length += text.length
		this.#cursor = delivery.cursor
		this.#isOver ||= isLast
		if (this.#length > BLOCK_LIMIT) this.flush()
	}
}
