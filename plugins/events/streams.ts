/** All open event streams: opens them, limits their number, sends heartbeats, and ends them. */
import { Fault } from '../../core/errors.ts'
import type { LiveFilter } from '../../core/events/event-bus.ts'
import type { Context } from '../../core/plugin.ts'
import type { Clearance } from '../../core/redactor/redactor.ts'
import { chunk, Connection, turnOf } from '../shared/sse.ts'
import type { Cursor } from '../../core/store/ports.ts'
import type { Credentials, OpenRequest, OpenRequests } from '../auth/contract.ts'
import { EventFeed } from './feed.ts'
import type { Frame, FeedReader } from './feed.ts'
import type { EventSettings, RunStream, StreamRequest } from './contract.ts'
import { comment, frameMaker, greeting, jsonFor } from './frames.ts'
import { Replay } from './replay.ts'

const heartbeat = chunk(comment('still here'))

/** Types of the last event of a run. */
const RUN_ENDS: ReadonlySet<string> = new Set(['run.completed', 'run.failed', 'run.stopped'])

/** `isOver`: the client has already received everything. */
type NewStream = Omit<StreamRequest, 'after'> & { isUnknown?: boolean; isOver?: boolean }

/** The position at which a stream begins. */
interface Beginning {
	at: Cursor
	/** The events since then; null: they are read from the log. */
	missing: Frame[] | null
}

interface Stream extends FeedReader, OpenRequest {
	feed: EventFeed
}

export class Streams {
	readonly #ctx: Context<EventSettings>
	readonly #feeds = new Map<string, EventFeed>()
	readonly #open: OpenRequests<Stream>
	readonly #replay: Replay
	readonly #framesFor = new Map<Clearance, ReturnType<typeof frameMaker>>()
	#dirty: EventFeed[] = []
	/** Includes streams that are being opened. */
	#size = 0

	constructor(ctx: Context<EventSettings>) {
		this.#ctx = ctx
		const limit = ctx.config.max_streams
		this.#open = ctx.use('auth').openRequests({ limit, what: 'event streams are open', areStreams: true })
		this.#replay = new Replay({
			events: ctx.events,
			failed: (reader, error) => {
				ctx.log.error({ err: error }, 'the log could not be read for an event stream')
				this.#end(reader as Stream, 'the log cannot be read')
			},
		})
	}

	get size(): number {
		return this.#size
	}

	/** As `Events.stream`. */
	async open({ after, ...request }: StreamRequest): Promise<void> {
		const { events } = this.#ctx
		this.#open.mustHaveRoom(request.credentials, this.#size)
		await this.#counted(async () => {
			const located = after === null ? null : await events.locate(after)
			const isUnknown = after !== null && located === null
			// A stream from the next event on might never see the end of its run.
			const known = located ?? (isUnknown && request.endsWithRun ? await events.locate('0') : null)
			const isOver = request.endsWithRun === true && (await this.#isOver(request.filter, known))
			return this.#begin({ ...request, isUnknown, isOver }, () =>
				known === null ? { at: events.head(), missing: [] } : { at: known, missing: null },
			)
		})
	}

	/** As `Events.ofRun`. */
	ofRun(run_id: string, credentials: Credentials): RunStream {
		this.#open.mustHaveRoom(credentials, this.#size)
		const request = { credentials, filter: { run_id }, endsWithRun: true }
		const at = this.#ctx.events.head()
		const owner = {}
		const feed = this.#feedOf(request)
		feed.listen(owner)
		const drop = (): void => {
			feed.buffered(owner)
			this.#closeIdle(feed)
		}
		return {
			drop,
			open: (response) =>
				this.#counted(() =>
					this.#begin({ ...request, response }, () => {
						const { frames, overflowed } = feed.buffered(owner)
						return { at, missing: overflowed ? null : frames }
					}),
				).finally(drop),
		}
	}

	/** Whether the run has ended, and its last event is not after `known`: the client has received it. */
	async #isOver({ run_id }: LiveFilter, known: Cursor | null): Promise<boolean> {
		if (run_id === undefined || known === null) return false
		const ends = async (after: Cursor | null): Promise<boolean> => {
			for (let next = after; ;) {
				const page = await this.#ctx.events.read({ run_id, types: [...RUN_ENDS] }, next, 1)
				if (page.entries.length > 0 || page.next === null) return page.entries.length > 0
				next = page.next
			}
		}
		return !(await ends(known)) && ends(null)
	}

	/** Ends all streams. */
	close(): void {
		this.#flush()
		for (const stream of this.#open) this.#end(stream, 'event streams are being restarted')
		this.#replay.close()
	}

	/** Counts a stream while it is being opened, and until it is removed. `open` returns whether the stream is open. */
	async #counted(open: () => Promise<boolean>): Promise<void> {
		this.#size++
		let isOpen = false
		try {
			isOpen = await open()
		} finally {
			if (!isOpen) this.#size--
		}
	}

	/** False if the client has disconnected. `begins` is called in the same turn in which the stream starts to receive events. */
	async #begin(request: NewStream, begins: () => Beginning): Promise<boolean> {
		const { response, credentials, isUnknown = false, isOver = false } = request
		const { config, signal } = this.#ctx
		const socket = await turnOf(response)
		if (signal.aborted) throw new Fault('unavailable', 'event streams are being restarted; connect again')
		if (!socket) return false
		this.#open.mustHaveRoom(credentials)
		const feed = this.#feedOf(request)
		const { at, missing } = begins()
		// A client that loses the connection before the first event can resume from here.
		response.setHeader('x-last-event-id', at)
		const connection = new Connection(response, socket, greeting(!isUnknown), {
			stallMs: config.stall_timeout_s * 1000,
			closed: () => this.#remove(stream),
		})
		const stream: Stream = {
			connection,
			credentials,
			cursor: at,
			feed,
			end: ({ message }) => this.#end(stream, message),
			beat: this.#beat(connection),
		}
		feed.readers.add(stream)
		this.#open.enter(stream)
		if (isOver) this.#finish(stream)
		else if (missing) feed.goLive(stream, missing)
		else this.#replay.add(stream, feed)
		return true
	}

	/** False if the stream was already removed. */
	#remove(stream: Stream): boolean {
		const { feed } = stream
		if (!this.#open.leave(stream)) return false
		this.#size--
		this.#replay.remove(stream)
		feed.remove(stream)
		this.#closeIdle(feed)
		return true
	}

	#closeIdle(feed: EventFeed): void {
		if (!feed.isIdle || this.#feeds.get(feed.options.key) !== feed) return
		feed.close()
		this.#feeds.delete(feed.options.key)
	}

	#end(stream: Stream, why: string): void {
		// Removed from the readers first: nothing may be written after the end.
		if (this.#remove(stream)) stream.connection.end(comment(why))
	}

	/** Ends a stream after its last event. A slow client still gets that event. */
	#finish(stream: Stream): void {
		if (this.#remove(stream)) stream.connection.whenReady(() => stream.connection.end())
	}

	#feedOf({
		filter,
		credentials,
		endsWithRun = false,
	}: Pick<NewStream, 'filter' | 'credentials' | 'endsWithRun'>): EventFeed {
		const clearance = this.#ctx.redactor.clearanceOf(credentials.scope)
		const key = keyOf(filter, clearance, endsWithRun)
		const known = this.#feeds.get(key)
		if (known) return known
		const textOf = this.#framesFor.get(clearance) ?? frameMaker(clearance)
		this.#framesFor.set(clearance, textOf)
		const feed = new EventFeed({
			key,
			filter,
			events: this.#ctx.events,
			textOf,
			jsonOf: (event) => jsonFor(clearance, event),
			isLast: ({ event_type }) => endsWithRun && RUN_ENDS.has(event_type),
			finished: (reader) => this.#finish(reader as Stream),
			dirty: (dirtyFeed) => this.#flushSoon(dirtyFeed),
			behind: (reader) => this.#replay.add(reader, feed),
		})
		this.#feeds.set(key, feed)
		return feed
	}

	/** Sends heartbeats. The first is at a random time, so that ten thousand streams do not send theirs at once. */
	#beat(connection: Connection): (now: number) => void {
		const intervalMs = this.#ctx.config.heartbeat_s * 1000
		let due = performance.now() + Math.random() * intervalMs
		return (now) => {
			if (now < due) return
			due += intervalMs
			if (!connection.full) connection.write(heartbeat)
		}
	}

	/** Sends all events of one write to the store, or of one message of a thread, as one block. */
	#flushSoon(feed: EventFeed): void {
		this.#dirty.push(feed)
		if (this.#dirty.length === 1) queueMicrotask(() => this.#flush())
	}

	#flush(): void {
		const dirty = this.#dirty
		this.#dirty = []
		for (const feed of dirty) feed.flush()
	}
}

function keyOf(
	{ agent_id, run_id, agents, types }: LiveFilter,
	{ seesNames }: Clearance,
	endsWithRun: boolean,
): string {
	return JSON.stringify([agent_id, run_id, agents, types && [...types].toSorted(), seesNames, endsWithRun])
}
