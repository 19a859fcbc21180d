import type { EventBus } from '../../core/events/event-bus.ts'
import { chunk } from '../shared/sse.ts'
import type { LogPage } from '../../core/store/ports.ts'
import type { EventFeed, Buffered, Frame, FeedReader } from './feed.ts'
import { frame } from './frames.ts'

/** Pages that are read in one turn of the event loop, so that a thousand clients that come back at once stop nobody. */
const READS_PER_TURN = 4
const PAGE_LIMIT = 128
/** Characters of one write; the client's socket says when the next may come. */
const WRITE_LIMIT = 64 * 1024

interface Catching {
	feed: EventFeed
	/** Events of the next page: fewer where they are large, since what is not written is read again. */
	limit: number
}

export interface ReplayOptions {
	events: EventBus
	/** The log could not be read for this reader. */
	failed: (reader: FeedReader, error: unknown) => void
}

/**
 * Brings readers from where they are to the end of the log, a page at a time and only as fast as their sockets take it:
 * nothing waits in memory but what one write holds. A reader that has reached the end becomes live.
 */
export class Replay {
	readonly #options: ReplayOptions
	readonly #catching = new Map<FeedReader, Catching>()
	/** Who is ready for a page, first come first served. */
	readonly #line = new Set<FeedReader>()
	#turn: NodeJS.Immediate | undefined

	constructor(options: ReplayOptions) {
		this.#options = options
	}

	add(reader: FeedReader, feed: EventFeed): void {
		this.#catching.set(reader, { feed, limit: PAGE_LIMIT / 8 })
		reader.connection.whenReady(() => this.#enqueue(reader))
	}

	remove(reader: FeedReader): void {
		this.#catching.delete(reader)
		this.#line.delete(reader)
	}

	close(): void {
		clearImmediate(this.#turn)
		this.#catching.clear()
		this.#line.clear()
	}

	#enqueue(reader: FeedReader): void {
		if (!this.#catching.has(reader)) return
		this.#line.add(reader)
		this.#turn ??= setImmediate(() => void this.#serve())
	}

	async #serve(): Promise<void> {
		const served = [...this.#line.keys().take(READS_PER_TURN)]
		for (const reader of served) this.#line.delete(reader)
		await Promise.all(served.map((reader) => this.#step(reader)))
		this.#turn = this.#line.size > 0 ? setImmediate(() => void this.#serve()) : undefined
	}

	async #step(reader: FeedReader): Promise<void> {
		const catching = this.#catching.get(reader)
		if (!catching) return
		const { feed, limit } = catching
		feed.listen(reader)
		let page: LogPage
		try {
			page = await this.#options.events.read(feed.options.filter, reader.cursor, limit)
		} catch (error) {
			feed.buffered(reader)
			this.#options.failed(reader, error)
			return
		}
		const buffered = feed.buffered(reader)
		if (!this.#catching.has(reader)) return

		const atEnd = this.#write(reader, page, catching)
		if (!this.#catching.has(reader)) return // the last event was among them
		if (!atEnd || buffered.overflowed || reader.connection.full) {
			reader.connection.whenReady(() => this.#enqueue(reader))
			return
		}
		this.#catching.delete(reader)
		feed.goLive(reader, missing(buffered, page))
	}

	/** True if the whole page was written and it was the last one. */
	#write(reader: FeedReader, page: LogPage, catching: Catching): boolean {
		const { feed } = catching
		let text = ''
		let count = 0
		let isOver = false
		for (const { cursor, event } of page.entries) {
			if (text.length >= WRITE_LIMIT) break
			text += frame(cursor, feed.options.jsonOf(event))
			reader.cursor = cursor
			count++
			if ((isOver = feed.options.isLast(event))) break
		}
		if (text !== '') reader.connection.write(chunk(text))
		if (isOver) {
			feed.options.finished(reader)
			return false
		}
		const whole = count === page.entries.length
		catching.limit = whole ? Math.min(PAGE_LIMIT, catching.limit * 2) : count
		if (!whole) return false
		if (page.next !== null) reader.cursor = page.next
		return page.next === null
	}
}

/**
 * What was heard during the read and is not in the page. The log shows nothing before it is heard, in the order in
 * which it is heard, so the page holds a beginning of what was heard.
 */
function missing(buffered: Buffered, page: LogPage): Frame[] {
	const read = new Set(page.entries.map(({ event }) => event.event_id))
	return buffered.frames.slice(buffered.frames.findLastIndex(({ event_id }) => read.has(event_id)) + 1)
}
