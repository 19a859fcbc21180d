/** The table of open streams: who may open one, what each of them does when, and how all of them end. */
import { Callers } from '../../core/callers.ts'
import { Fault } from '../../core/errors.ts'
import type { LiveFilter } from '../../core/events.ts'
import type { Context } from '../../core/plugin.ts'
import { chunk, Connection, turnOf } from '../../core/sse.ts'
import type { Cursor } from '../../core/store/ports.ts'
import type { Credentials } from '../auth/contract.ts'
import { Channel } from './channel.ts'
import type { Reader } from './channel.ts'
import type { EventSettings, StreamRequest } from './contract.ts'
import { frameMaker, greeting, heartbeat } from './frames.ts'
import { Replay } from './replay.ts'

/** Twice in the second within which the streams of a caller that is no longer good must end. */
const BEAT_MS = 500
/** For whoever finds no room. */
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
	readonly #textOf = frameMaker()
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
			if (after !== null) await events.read({}, after, 1) // throws for a position that is none
			const socket = await turnOf(response)
			if (signal.aborted) throw new Fault('unavailable', 'event streams are being restarted; connect again')
			if (!socket) {
				this.#size--
				return
			}
			const at = after ?? events.head()
			const connection = new Connection(response, socket, greeting(at), {
				stallMs: config.stall_timeout_s * 1000,
				closed: () => this.#remove(stream),
			})
			const stream: Stream = {
				connection,
				credentials,
				cursor: at,
				channel: this.#channelOf(filter),
				slot: this.#emptiestSlot(),
			}
			this.#add(stream, after)
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

	#add(stream: Stream, after: Cursor | null): void {
		stream.channel.readers.add(stream)
		stream.slot.add(stream)
		this.#callers.add(stream.credentials, stream)
		if (after === null) stream.channel.goLive(stream, '')
		else this.#replay.add(stream, stream.channel)
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
			this.#channels.delete(keyOf(channel.filter))
		}
		return true
	}

	#end(stream: Stream, why: string): void {
		// First of all it hears no more: nothing may be written behind the end.
		if (this.#remove(stream)) stream.connection.end(`: ${why}\n\n`)
	}

	#channelOf(filter: LiveFilter): Channel {
		const key = keyOf(filter)
		const known = this.#channels.get(key)
		if (known) return known
		const channel = new Channel({
			filter,
			events: this.#ctx.events,
			textOf: this.#textOf,
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
		this.#flush() // behind it, every live stream stands at the head
		const head = this.#ctx.events.head()
		const ofLive = chunk(heartbeat(head))
		for (const stream of slot) {
			if (stream.connection.full) continue
			if (stream.channel.isLive(stream)) stream.connection.write(ofLive)
			else stream.connection.write(chunk(heartbeat(stream.cursor)))
		}
	}
}

function keyOf({ agent_id, run_id, types }: LiveFilter): string {
	return JSON.stringify([agent_id, run_id, types && [...types].toSorted()])
}
