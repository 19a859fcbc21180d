/** The table of open streams: who may open one, what each of them does when, and how all of them end. */
import { Callers } from '../../core/http/callers.ts'
import { Fault } from '../../core/errors.ts'
import type { LiveFilter } from '../../core/events/event-bus.ts'
import type { Context } from '../../core/plugin.ts'
import type { Clearance } from '../../core/redactor/redactor.ts'
import { chunk, Connection, turnOf } from '../../core/http/sse.ts'
import type { Credentials } from '../auth/contract.ts'
import { Channel } from './channel.ts'
import type { Reader } from './channel.ts'
import type { EventSettings, StreamRequest } from './contract.ts'
import { comment, frameMaker, greeting, jsonFor } from './frames.ts'
import { Replay } from './replay.ts'

/** Twice in the second within which the streams of a caller that is no longer good must end. */
const BEAT_MS = 500
/** The delay for a client that is refused. */
const RETRY_AFTER_S = 5

interface Stream extends Reader {
	channel: Channel
	credentials: Credentials
	/** Its heartbeat comes in one beat out of `slots.length`, so that ten thousand do not come at once. */
	slot: Set<Stream>
}

export class Streams {
	readonly #ctx: Context<EventSettings>
	readonly #channels = new Map<string, Channel>()
	readonly #callers = new Callers<Credentials, Stream>()
	readonly #replay: Replay
	readonly #slots: Set<Stream>[]
	readonly #framesFor = new Map<Clearance, ReturnType<typeof frameMaker>>()
	readonly #beat: NodeJS.Timeout
	#dirty: Channel[] = []
	#flushing: NodeJS.Immediate | undefined
	#beats = 0
	#size = 0

	constructor(ctx: Context<EventSettings>) {
		this.#ctx = ctx
		this.#slots = Array.from({ length: Math.ceil((ctx.config.heartbeat_s * 1000) / BEAT_MS) }, () => new Set<Stream>())
		this.#replay = new Replay({
			events: ctx.events,
			failed: (reader, error) => {
				ctx.log.error({ err: error }, 'the log could not be read for an event stream')
				this.#end(reader as Stream, 'the log cannot be read')
			},
		})
		this.#beat = setInterval(() => this.#onBeat(), BEAT_MS)
		this.#beat.unref()
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
				slot: this.#emptiestSlot(),
			}
			this.#add(stream, known !== null)
		} catch (error) {
			this.#size--
			throw error
		}
	}

	/** Ends all of them. */
	close(): void {
		clearInterval(this.#beat)
		this.#flush()
		for (const channel of this.#channels.values())
			for (const reader of channel.readers) this.#end(reader as Stream, 'event streams are being restarted')
		this.#replay.close()
	}

	#add(stream: Stream, isBehind: boolean): void {
		stream.channel.readers.add(stream)
		stream.slot.add(stream)
		this.#callers.add(stream.credentials, stream)
		if (isBehind) this.#replay.add(stream, stream.channel)
		else stream.channel.goLive(stream, '')
	}

	/** False where it had been removed before. */
	#remove(stream: Stream): boolean {
		const { channel, credentials, slot } = stream
		if (!slot.delete(stream)) return false
		this.#size--
		this.#callers.remove(credentials, stream)
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

	#emptiestSlot(): Set<Stream> {
		return this.#slots.reduce((a, b) => (b.size < a.size ? b : a))
	}

	/** What one turn of the event loop brings, such as all appends of one write to the disk, goes out together. */
	#flushSoon(channel: Channel): void {
		this.#dirty.push(channel)
		this.#flushing ??= setImmediate(() => this.#flush())
	}

	#flush(): void {
		clearImmediate(this.#flushing)
		this.#flushing = undefined
		const dirty = this.#dirty
		this.#dirty = []
		for (const channel of dirty) channel.flush()
	}

	#onBeat(): void {
		if (this.#size === 0) return
		void this.#callers.check(
			async (credentials) => this.#ctx.use('auth').check(credentials),
			(stream) => this.#end(stream, 'the token is no longer valid'),
		)
		const slot = this.#slots[this.#beats++ % this.#slots.length]
		if (!slot || slot.size === 0) return
		const heartbeat = chunk(comment('still here'))
		for (const stream of slot) if (!stream.connection.full) stream.connection.write(heartbeat)
	}
}

function keyOf({ agent_id, run_id, types }: LiveFilter, { seesNames }: Clearance): string {
	return JSON.stringify([agent_id, run_id, types && [...types].toSorted(), seesNames])
}
