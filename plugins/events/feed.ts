import type { Delivery, EventBus, LiveFilter } from '../../core/events/event-bus.ts'
import { chunk } from '../shared/sse.ts'
import type { Connection } from '../shared/sse.ts'
import type { Cursor, EventEnvelope } from '../../core/store/ports.ts'

/** Above this many bytes waiting for a live client, it gets no more live events, and reads the log once it is ready again. */
const BACKLOG_LIMIT = 256 * 1024
/** Events that come together go out as one block, of about this many characters at most. */
const BLOCK_LIMIT = 256 * 1024
/** Events kept for a client during the read that may turn it live. Where there are more, it reads again. */
const BUFFER_LIMIT = 1000

/** A client, as far as its feed and the replay need to know it. */
export interface FeedReader {
	readonly connection: Connection
	/** Everything of its filter up to here has been written. */
	cursor: Cursor
}

/** An event as its readers get it. */
export interface Frame {
	event_id: string
	text: string
	/** The readers' streams end with it. */
	isLast: boolean
}

/** Events that arrived while a reader's page was being read, or before it had a connection. */
export interface Buffered {
	frames: Frame[]
	/** There was more than fits. */
	overflowed: boolean
}

export interface FeedOptions {
	/** Identifies it among the others. */
	key: string
	filter: LiveFilter
	events: EventBus
	/** The frame of an event, for readers of this feed. */
	textOf: (delivery: Delivery) => string
	/** The JSON of an event that comes from the log. */
	jsonOf: (event: EventEnvelope) => string
	/** Whether the streams of this feed end with this event. */
	isLast: (event: EventEnvelope) => boolean
	/** The last event has been written. */
	finished: (reader: FeedReader) => void
	/** `flush` must be called before the next turn of the event loop. */
	dirty: (feed: EventFeed) => void
	/** A reader is no longer live; it must catch up from its cursor. */
	behind: (reader: FeedReader) => void
}

/**
 * One filter with all its readers. It listens once for all of them, and passes events to those that are live; the others
 * read the log until they have caught up.
 */
export class EventFeed {
	readonly options: FeedOptions
	readonly readers = new Set<FeedReader>()
	readonly #live = new Set<FeedReader>()
	/** Readers, or what takes their place before they have a connection. */
	readonly #joining = new Map<object, Buffered>()
	readonly #unsubscribe: () => void
	#waiting: string[] = []
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

	/** Stores events that arrive from now on for this reader, until `buffered` is called. */
	listen(reader: object): void {
		this.#joining.set(reader, { frames: [], overflowed: false })
	}

	buffered(reader: object): Buffered {
		const buffered = this.#joining.get(reader) ?? { frames: [], overflowed: true }
		this.#joining.delete(reader)
		return buffered
	}

	/** From here on it hears. `missing`: what came between its cursor and this very moment. */
	goLive(reader: FeedReader, missing: readonly Frame[]): void {
		// What waits was heard before this moment: it is for those that were live already.
		this.flush()
		if (missing.length > 0) reader.connection.write(chunk(missing.map(({ text }) => text).join('')))
		if (missing.some(({ isLast }) => isLast)) return this.options.finished(reader)
		reader.cursor = this.options.events.head()
		this.#live.add(reader)
	}

	/** Writes the events that wait to every live reader that can accept them. */
	flush(): void {
		if (this.#length === 0) return
		const block = chunk(this.#waiting.join(''))
		this.#waiting = []
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
		this.#waiting.push(text)
		this.#length += text.length
		this.#cursor = delivery.cursor
		this.#isOver ||= isLast
		if (this.#length > BLOCK_LIMIT) this.flush()
	}
}
