/**
 * The sharding strategy of discord.js with two fixes: a dropped socket is closed, and a destroyed client does not reconnect.
 */
import { SimpleShardingStrategy } from 'discord.js'
import type { WebSocketOptions } from 'discord.js'
import type { WebSocket } from 'ws'

type Build = NonNullable<WebSocketOptions['buildStrategy']>

/** Time for the server to close; ws would wait 30 s, during which a dead connection would look healthy. */
const CLOSE_MS = 2_000

/** Private members of a shard in discord.js. */
interface Shard {
	connection: WebSocket | null
	destroy(options?: { recover?: unknown }): Promise<void>
}

/** `onLeaving` is called when a socket is dropped and will be reopened. After `end`, nothing connects. */
export function endingStrategy(onLeaving: () => void): { build: Build; end(): void } {
	let ended = false
	const watch = (shard: Shard): void => {
		const destroy = shard.destroy.bind(shard)
		shard.destroy = (options) => {
			if (options?.recover !== undefined) onLeaving()
			if (shard.connection) finish(shard.connection)
			return destroy(options)
		}
	}
	return {
		build(manager) {
			const { retrieveSessionInfo } = manager.options
			// `destroy` does not reach a shard that is about to connect. Such a shard requests its session first, so after `end` it
			// waits here forever, without a timer.
			manager.options.retrieveSessionInfo = (id) => (ended ? new Promise(() => {}) : retrieveSessionInfo(id))
			const strategy = new SimpleShardingStrategy(manager)
			const spawn = strategy.spawn.bind(strategy)
			strategy.spawn = async (ids) => {
				await spawn(ids)
				const { shards } = strategy as unknown as { shards: Map<number, Shard> }
				for (const shard of shards.values()) watch(shard)
			}
			return strategy
		},
		end: () => void (ended = true),
	}
}

function finish(socket: WebSocket): void {
	if (socket.readyState === socket.CLOSED) return
	socket.on('error', () => {}) // discord.js removes its listener, and an unhandled error would be thrown
	const timer = setTimeout(() => socket.terminate(), CLOSE_MS)
	socket.once('close', () => clearTimeout(timer))
}
