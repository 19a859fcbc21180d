/** Calls to the platforms of channels. Callers wait while a channel is not connected. */
import { within } from '../../../core/util/deadline.ts'
import { BoundedMap } from '../../../core/util/bounded-map.ts'
import { onAbort } from '../../../core/util/on-abort.ts'
import { openSemaphore } from '../../../core/util/semaphore.ts'
import type { Semaphore } from '../../../core/util/semaphore.ts'
import type { Connection } from '../adapter.ts'
import type { LiveChannel } from '../parts.ts'
import type { Registry } from '../registry.ts'
import { Counts } from '../../../core/util/counts.ts'

export interface ConnectedChannel {
	channel: LiveChannel
	connection: Connection
}

export type Platforms = ReturnType<typeof openPlatforms>

/** Concurrent calls of one channel. */
const CALL_LIMIT = 64
const CALL_MS = 60_000
/** The same for optional calls. */
const ASIDE_LIMIT = 32
const ASIDE_MS = 5_000
const TIMER_LIMIT_MS = 2 ** 31 - 1
const GONE_LIMIT = 1_000

export function openPlatforms(registry: Registry, signal: AbortSignal) {
	const waiting = new Map<string, Set<(isThere: boolean) => void>>()
	/** Ids are never reused, so it is safe to forget the oldest. */
	const gone = new BoundedMap<string, true>(GONE_LIMIT)
	/** Of a channel, once it made a call. */
	const places = new Map<string, Semaphore>()
	const asides = new Counts()

	const notify = (channel_id: string, isThere: boolean): void => {
		const all = waiting.get(channel_id)
		waiting.delete(channel_id)
		for (const wake of all ?? []) wake(isThere)
	}

	const now = (channel_id: string): ConnectedChannel | undefined => {
		const channel = registry.channel(channel_id)
		const connection = channel?.connection()
		return channel && connection && { channel, connection }
	}
	return {
		/** Undefined if the channel is not connected. */
		now,
		/** Settles once the channel is connected. Undefined if it was deleted, or is not connected by `until` (ms since 1970). Throws when the signal aborts. */
		async open(channel_id: string, until: number): Promise<ConnectedChannel | undefined> {
			for (;;) {
				signal.throwIfAborted()
				if (Date.now() >= until || gone.has(channel_id)) return undefined
				const found = now(channel_id)
				if (found) return found
				if (!(await connects(channel_id, until))) return undefined
			}
		},
		/** Makes a call, as soon as not too many others of this channel are running. On a timeout it throws, and the outcome is unknown. */
		async call<T>(channel_id: string, make: () => Promise<T>): Promise<T> {
			const own = places.get(channel_id) ?? openSemaphore(CALL_LIMIT)
			if (!gone.has(channel_id)) places.set(channel_id, own)
			const release = await own.take()
			try {
				return await within(CALL_MS, 'the platform', make())
			} finally {
				release()
			}
		},
		/**
		 * Makes an optional call that delays no other. It throws after a timeout of a few seconds; the outcome is unknown then.
		 * Undefined if too many such calls are running.
		 */
		aside(channel_id: string, make: () => Promise<void>): Promise<void> | undefined {
			if (asides.of(channel_id) >= ASIDE_LIMIT) return undefined
			asides.add(channel_id)
			return within(ASIDE_MS, 'the platform', make()).finally(() => asides.add(channel_id, -1))
		},
		/** The channel is connected or reconnected. */
		connected: (channel_id: string): void => notify(channel_id, true),
		/** The channel was deleted: ends every wait for it. */
		forget(channel_id: string): void {
			gone.set(channel_id, true)
			places.delete(channel_id)
			notify(channel_id, false)
		},
	}

	function connects(channel_id: string, until: number): Promise<boolean> {
		const { promise, resolve, reject } = Promise.withResolvers<boolean>()
		const all = waiting.get(channel_id) ?? new Set()
		waiting.set(channel_id, all.add(resolve))
		const timer = setTimeout(resolve, Math.min(until - Date.now(), TIMER_LIMIT_MS), false).unref()
		const stay = onAbort(signal, () => reject(signal.reason))
		return promise.finally(() => {
			clearTimeout(timer)
			stay()
			all.delete(resolve)
			if (all.size === 0 && waiting.get(channel_id) === all) waiting.delete(channel_id)
		})
	}
}
