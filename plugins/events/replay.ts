import type { EventBus } from '../../core/events/event-bus.ts'
import { chunk } from '../shared/sse.ts'
import type { LogPage } from '../../core/store/ports.ts'
import type { EventFeed, Buffered, Frame, FeedReader } from './feed.ts'
import { frame } from './frames.ts'

/** Pages read per turn of the event loop, so that a thousand clients that reconnect at once do not block others. */
const READS_PER_TURN = 4
const PAGE_LIMIT = 128
/** Characters of one write. The next one waits until the socket has drained. */
const WRITE_LIMIT = 64 * 1024

interface CatchUp {
	feed: EventFeed
	/** Events in the next page. Smaller for large events, since those that do not fit into one write are read again. */
	limit: number
}

export interface ReplayOptions {
	events: EventBus
	/** Called if the log could not be read for this reader. */
	failed: (reader: FeedReader, error: unknown) => void
}

/**
 * Sends readers the log from their cursors on, a page at a time and at the speed of their sockets. So at most one write per
 * reader is in memory. A reader that has reached the end of the log becomes live.
 */
export class Replay {
	readonly #options: ReplayOptions
	readonly #catching = new Map<FeedReader, CatchUp>()
	/** Readers that are ready for a page, first in, first out. */
	readonly #queue = new Set<FeedReader>()
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
		this.#queue.delete(reader)
	}

	close(): void {
		clearImmediate(this.#turn)
		this.#catching.clear()
		this.#queue.clear()
	}

	#enqueue(reader: FeedReader): void {
		if (!this.#catching.has(reader)) return
		this.#queue.add(reader)
		this.#turn ??= setImmediate(() => void this.#serve())
	}

	async #serve(): Promise<void> {
		const served = [...this.#queue.keys().take(READS_PER_TURN)]
		for (const reader of served) this.#queue.delete(reader)
		await Promise.all(served.map((reader) => this.#step(reader)))
		this.#turn = this.#queue.size > 0 ? setImmediate(() => void this.#serve()) : undefined
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
		if (!this.#catching.has(reader)) return // the page contained the last event
		if (!atEnd || buffered.overflowed || reader.connection.full) {
			reader.connection.whenReady(() => this.#enqueue(reader))
			return
		}
		this.#catching.delete(reader)
		feed.goLive(reader, missing(buffered, page))
	}

	/** Whether the whole page was written, and was the last one. */
	#write(reader: FeedReader, page: LogPage, catching: CatchUp): boolean {
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

/** The buffered events that the page lacks. It has a prefix of them, since each arrives before the log returns it. */
function missing(buffered: Buffered, page: LogPage): Frame[] {
	const read = new Set(page.entries.map(({ event }) => event.event_id))
	return buffered.frames.slice(buffered.frames.findLastIndex(({ event_id }) => read.has(event_id)) + 1)
}
