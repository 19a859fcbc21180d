/**
 * How discord.js keeps its socket, with two fixes: a dropped socket is closed, and a destroyed client stays
 * destroyed.
 */
import { SimpleShardingStrategy } from 'discord.js'
import type { WebSocketOptions } from 'discord.js'
import type { WebSocket } from 'ws'

type Build = NonNullable<WebSocketOptions['buildStrategy']>
type Manager = Parameters<Build>[0]

/** Time for the other side to close; ws would wait for 30 s, during which a dead connection would look healthy. */
const GOODBYE_MS = 2_000

/** `onLeaving` is called when a socket is dropped and will be opened again. From `end` on nothing connects. */
export function endingStrategy(onLeaving: () => void): { build: Build; end(): void } {
	let ended = false
	return {
		build(manager) {
			const { retrieveSessionInfo } = manager.options
			// A shard between two attempts, or before its first one, is not notified of the end: it requests its session before
			// it connects, and waits here for ever, without a timer.
			manager.options.retrieveSessionInfo = (id) => (ended ? new Promise(() => {}) : retrieveSessionInfo(id))
			return new Strategy(manager, onLeaving)
		},
		end: () => void (ended = true),
	}
}

/** What discord.js declares as private. */
interface Shard {
	connection: WebSocket | null
	destroy(options?: { recover?: unknown }): Promise<void>
}

class Strategy extends SimpleShardingStrategy {
	readonly #onLeaving: () => void

	constructor(manager: Manager, onLeaving: () => void) {
		super(manager)
		this.#onLeaving = onLeaving
	}

	override async spawn(ids: number[]): Promise<void> {
		await super.spawn(ids)
		const { shards } = this as unknown as { shards: Map<number, Shard> }
		for (const shard of shards.values()) {
			const destroy = shard.destroy.bind(shard)
			shard.destroy = (options) => {
				if (options?.recover !== undefined) this.#onLeaving()
				if (shard.connection) finish(shard.connection)
				return destroy(options)
			}
		}
	}
}

function finish(socket: WebSocket): void {
	if (socket.readyState === socket.CLOSED) return
	socket.on('error', () => {}) // discord.js removes its own listener, and then an error would have none
	const timer = setTimeout(() => socket.terminate(), GOODBYE_MS)
	socket.once('close', () => clearTimeout(timer))
}
