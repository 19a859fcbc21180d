/**
 * Closes connections whose clients do not read their answers. The answers stay in memory, and one may have several MiB, so a
 * client with many connections could fill the memory.
 */
import type { Socket } from 'node:net'
import type { Logger } from '../log/log.ts'

export interface UnsentLimits {
	/** After one to two times this without progress, a connection is closed. */
	stall_ms: number
	/** Limit of all waiting answers together. */
	bytes: number
}

const MIB = 1024 * 1024
export const unsentLimits: UnsentLimits = { stall_ms: 30_000, bytes: 128 * MIB }

/** Returns a check of all connections, to be called a few times a second while there are answers. */
export function endUnsent(
	{ stall_ms, bytes }: UnsentLimits,
	log: Pick<Logger, 'warn'>,
): (connections: Iterable<Socket>) => void {
	/** Connections whose buffers are full, longest first. */
	const late = new Set<Socket>()
	return (connections) => {
		let total = 0
		for (const socket of late) if (socket.destroyed) late.delete(socket)
		for (const socket of connections) {
			if (socket.writableNeedDrain) {
				late.add(socket)
				total += socket.writableLength
				// Event streams set their own limit. The time counts from the last bytes that the client accepted.
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
			`closed connections whose clients do not read their answers: ${count}; ${Math.ceil(waiting / MIB)} MiB were waiting`,
		)
	}
}
