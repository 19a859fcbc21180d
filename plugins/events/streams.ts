/** The table of open streams: who may open one, what each of them does when, and how all of them end. */
import { Fault } from '../../core/errors.ts'
import type { LiveFilter } from '../../core/events/event-bus.ts'
import type { Context } from '../../core/plugin.ts'
import type { Clearance } from '../../core/redactor/redactor.ts'
import { chunk, Connection, turnOf } from '../../core/http/sse.ts'
import type { OpenRequest, OpenRequests } from '../auth/contract.ts'
import { Channel } from './channel.ts'
import type { Reader } from './channel.ts'
import type { EventSettings, StreamRequest } from './contract.ts'
import { comment, frameMaker, greeting, jsonFor } from './frames.ts'
import { Replay } from './replay.ts'

/** The delay for a client that is refused. */
const RETRY_AFTER_S = 5

const heartbeat = chunk(comment('still here'))

interface Stream extends Reader, OpenRequest {
	channel: Channel
}

/** Milliseconds within which events come closely. */
const CLOSE_MS = 2

export class Streams {
	readonly #ctx: Context<EventSettings>
	readonly #channels = new Map<string, Channel>()
	readonly #open: OpenRequests<Stream>
	readonly #replay: Replay
	readonly #framesFor = new Map<Clearance, ReturnType<typeof frameMaker>>()
	#dirty: Channel[] = []
	#flushing: NodeJS.Immediate | undefined
	#flushedAt = 0
	/** Those that are being opened included. */
	#size = 0

	constructor(ctx: Context<EventSettings>) {
		this.#ctx = ctx
		this.#open = ctx.use('auth').openRequests({ what: 'event streams are open' })
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

	/** See `Events.stream`. */
	async open({ response, credentials, filter, after }: StreamRequest): Promise<void> {
		const { events, config, signal } = this.#ctx
		if (this.#size >= config.max_streams) {
			throw new Fault('unavailable', `${config.max_streams} streams are open, which is the limit; try again later`, {
				headers: { 'retry-after': String(RETRY_AFTER_S) },
			})
		}
		this.#size++
		try {
			const known = after === null ? null : await events.locate(after)
			const socket = await turnOf(response)
			if (signal.aborted) throw new Fault('unavailable', 'event streams are being restarted; connect again')
			if (!socket) {
				this.#size--
				return
			}
			const at = known ?? events.head()
			// A client that is cut off before its first event resumes from here.
			response.setHeader('x-last-event-id', at)
			const connection = new Connection(response, socket, greeting(after === null || known !== null), {
				stallMs: config.stall_timeout_s * 1000,
				closed: () => this.#remove(stream),
			})
			const stream: Stream = {
				connection,
				credentials,
				cursor: at,
				channel: this.#channelOf(filter, this.#ctx.redactor.clearanceOf(credentials.scope)),
				end: ({ message }) => this.#end(stream, message),
				beat: this.#beat(connection),
			}
			this.#add(stream, known !== null)
		} catch (error) {
			this.#size--
			throw error
		}
	}

	/** Ends all of them. */
	close(): void {
		this.#flush()
		for (const stream of this.#open) this.#end(stream, 'event streams are being restarted')
		this.#replay.close()
	}

	#add(stream: Stream, isBehind: boolean): void {
		stream.channel.readers.add(stream)
		this.#open.enter(stream)
		if (isBehind) this.#replay.add(stream, stream.channel)
		else stream.channel.goLive(stream, '')
	}

	/** False where it had been removed before. */
	#remove(stream: Stream): boolean {
		const { channel } = stream
		if (!this.#open.leave(stream)) return false
		this.#size--
		this.#replay.remove(stream)
		channel.remove(stream)
		if (channel.readers.size === 0) {
			channel.close()
			this.#channels.delete(channel.key)
		}
		return true
	}

	#end(stream: Stream, why: string): void {
		// Removed from the readers first: nothing may be written after the end.
		if (this.#remove(stream)) stream.connection.end(comment(why))
	}

	#channelOf(filter: LiveFilter, clearance: Clearance): Channel {
		const key = keyOf(filter, clearance)
		const known = this.#channels.get(key)
		if (known) return known
		const textOf = this.#framesFor.get(clearance) ?? frameMaker(clearance)
		this.#framesFor.set(clearance, textOf)
		const channel = new Channel({
			key,
			filter,
			events: this.#ctx.events,
			textOf,
			jsonOf: (event) => jsonFor(clearance, event),
			dirty: (one) => this.#flushSoon(one),
			behind: (reader) => this.#replay.add(reader, channel),
		})
		this.#channels.set(key, channel)
		return channel
	}

	/** Sends its heartbeats. The first one comes at a random time, so that ten thousand do not come at once. */
	#beat(connection: Connection): (now: number) => void {
		const intervalMs = this.#ctx.config.heartbeat_s * 1000
		let due = performance.now() + Math.random() * intervalMs
		return (now) => {
			if (now < due) return
			due += intervalMs
			if (!connection.full) connection.write(heartbeat)
		}
	}

	/**
	 * What one write to the disk brings goes out together, at once. Where events come closely, so does what one turn of the event
	 * loop brings.
	 */
	#flushSoon(channel: Channel): void {
		this.#dirty.push(channel)
		if (this.#flushing !== undefined || this.#dirty.length > 1) return
		if (performance.now() - this.#flushedAt > CLOSE_MS) queueMicrotask(() => this.#flush())
		else this.#flushing = setImmediate(() => this.#flush())
	}

	#flush(): void {
		clearImmediate(this.#flushing)
		this.#flushing = undefined
		this.#flushedAt = performance.now()
		const dirty = this.#dirty
		this.#dirty = []
		for (const channel of dirty) channel.flush()
	}
}

function keyOf({ agent_id, run_id, types }: LiveFilter, { seesNames }: Clearance): string {
	return JSON.stringify([agent_id, run_id, types && [...types].toSorted(), seesNames])
}
