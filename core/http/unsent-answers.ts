/**
 * Ends connections whose clients do not take their answers. These wait in memory meanwhile, and one answer may have several MiB,
 * so a client with many connections could fill it.
 */
import type { Socket } from 'node:net'
import type { Logger } from '../log/log.ts'

export interface UnsentLimits {
	/** How long a connection may make no progress. */
	stall_ms: number
	/** Of all answers together. */
	bytes: number
}

const MIB = 1024 * 1024
export const unsentLimits: UnsentLimits = { stall_ms: 30_000, bytes: 128 * MIB }

/** Returns what must be called a few times a second while there are answers, with all connections. */
export function endUnsent(
	{ stall_ms, bytes }: UnsentLimits,
	log: Pick<Logger, 'warn'>,
): (connections: Iterable<Socket>) => void {
	/** Connections with more than fits in their buffers, the one that has been so for longest first. */
	const late = new Set<Socket>()
	return (connections) => {
		let total = 0
		for (const socket of late) if (socket.destroyed) late.delete(socket)
		for (const socket of connections) {
			if (socket.writableNeedDrain) {
				late.add(socket)
				total += socket.writableLength
				// An event stream has a limit of its own. The time counts from the last bytes that the client took.
				if (!socket.timeout) socket.setTimeout(stall_ms)
			} else if (late.delete(socket) && socket.timeout === stall_ms) socket.setTimeout(0)
		}
		if (total <= bytes) return
		const waiting = total
		let count = 0
		for (const socket of late) {
			if (total <= bytes) break
			total -= socket.writableLength
			late.delete(socket)
			socket.destroy()
			count++
		}
		log.warn(
			`${count} connections were ended: their clients did not take the answers, of which ${Math.ceil(waiting / MIB)} MiB were waiting`,
		)
	}
}
