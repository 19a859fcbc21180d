/** Reports state changes of a connection as events, rate-limited. */
import { setTimeout as pause } from 'node:timers/promises'
import { openSerialQueue } from '../../core/util/serial-queue.ts'
import { openBuckets } from '../../core/util/token-buckets.ts'
import type { ConnectionState } from './contract.ts'

export interface ChannelState {
	connection: ConnectionState
	bot: string | null
	last_error: string | null
}

export const connecting: Readonly<ChannelState> = { connection: 'connecting', bot: null, last_error: null }

export type StateEventType = 'channel.connected' | 'channel.disconnected' | 'channel.error'

/** Rate limit of events: a burst of 30, then one every five seconds. */
const EVENTS = { at_once: 30, per_minute: 12 }
/** Of more queued states, only the newest is reported. */
const WAITING_LIMIT = 32

/**
 * Returns a function to call with each new state. Reports connects, disconnects and errors; a repeated error only once. `emit`
 * must not throw.
 */
export function openStateEvents(
	emit: (
		type: StateEventType,
		payload: { bot?: string | null; error?: string | null },
		state: ChannelState,
	) => Promise<void>,
	signal: AbortSignal,
): (state: ChannelState) => void {
	let up = false
	let error: string | null = null
	const events = openBuckets(EVENTS)
	const queue = openSerialQueue()
	let newest = connecting

	const turn = async (): Promise<void> => {
		for (let ms; (ms = events.take('')) > 0;) await pause(ms, undefined, { signal, ref: false })
	}
	const report = async (next: ChannelState): Promise<void> => {
		const isUp = next.connection === 'connected'
		if (isUp && !up) {
			await turn()
			await emit('channel.connected', { bot: next.bot }, next)
			error = null
		} else if (!isUp && up) {
			await turn()
			await emit('channel.disconnected', { error: next.last_error }, next)
			error = next.last_error
		}
		up = isUp
		const isNew = next.last_error !== null && next.last_error !== error
		if (!isNew) return
		await turn()
		await emit('channel.error', { error: next.last_error }, next)
		error = next.last_error
	}
	return (state) => {
		newest = state
		if (queue.length() >= WAITING_LIMIT) return // the last one in the queue reports the newest state
		const work = async (): Promise<void> => {
			if (!signal.aborted) await report(queue.length() === 1 ? newest : state)
		}
		queue.run(work).catch(() => {}) // aborted while it waited
	}
}
