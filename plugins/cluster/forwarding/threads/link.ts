/**
 * A connection between two gateways that carries messages. It ends when the other side closes it, violates the protocol, is silent
 * for some seconds or reads too slowly. The other side is then considered lost.
 */
import type { Duplex } from 'node:stream'
import { messageOf } from '../../../../core/errors.ts'
import { encode, frameReader, ping } from './frames.ts'

export interface LinkLimits {
	/** Size of a message, in bytes. */
	frame: number
	/** Above this many unsent bytes the link is busy. */
	busy: number
	/** Above this many unsent bytes the link ends. Larger than `frame`. */
	unsent: number
	/** Between two pings. */
	pingMs: number
	/** After this many pings without a byte from the other side, the link ends. */
	silentPings: number
}

const MIB = 1024 * 1024
/** A silent link ends long before a lease does (`holdMs` of the lease is 12 s). */
export const linkLimits: LinkLimits = {
	frame: 64 * MIB,
	busy: 16 * MIB,
	unsent: 128 * MIB,
	pingMs: 1_000,
	silentPings: 5,
}

export interface LinkOptions {
	receive(message: unknown): void
	/** Called once. Nothing is received after that. */
	ended(reason: string): void
	/** Called when the link is no longer busy. */
	drained?(): void
	limits?: LinkLimits
}

export interface ThreadLink<Message> {
	/** Throws if the message cannot be cloned, or is too large. Does nothing once the link has ended. */
	send(message: Message): void
	/** Drops unsent data. */
	end(reason: string): void
	/** The other side reads more slowly than this one sends. */
	readonly isBusy: boolean
}

export function openLink<Message>(
	socket: Duplex,
	{ receive, ended, drained, limits = linkLimits }: LinkOptions,
): ThreadLink<Message> {
	let isOver = false
	let isCorked = false
	let silent = 0
	const end = (reason: string): void => {
		if (isOver) return
		isOver = true
		clearInterval(timer)
		socket.destroy()
		ended(reason)
	}
	const write = (...parts: Buffer[]): void => {
		if (isOver) return
		// Messages of one turn become one write.
		if (!isCorked) {
			isCorked = true
			socket.cork()
			process.nextTick(() => {
				isCorked = false
				socket.uncork()
			})
		}
		for (const part of parts) socket.write(part)
		if (socket.writableLength > limits.unsent) end('it reads too slowly')
	}
	// Counts ticks instead of time: after this process itself was suspended there is one tick, and then the received data is read.
	const timer = setInterval(() => {
		if (++silent > limits.silentPings) end(`it was silent for ${(limits.silentPings * limits.pingMs) / 1000} s`)
		else write(ping)
	}, limits.pingMs).unref()
	const read = frameReader(limits.frame, (message) => {
		if (!isOver) receive(message)
	})
	socket.on('data', (bytes: Buffer) => {
		silent = 0
		if (isOver) return
		try {
			read(bytes)
		} catch (error) {
			end(`it sent an invalid message: ${messageOf(error)}`)
		}
	})
	socket.on('drain', () => drained?.())
	socket.on('error', (error) => end(messageOf(error)))
	socket.on('close', () => end('it closed the connection'))
	return {
		send(message) {
			if (!isOver) write(...encode(message, limits.frame))
		},
		end,
		get isBusy() {
			return socket.writableLength > limits.busy
		},
	}
}
