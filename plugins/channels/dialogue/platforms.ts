/** Calls to the platforms of channels, which wait until the channel is connected. */
import { within } from '../../../core/util/deadline.ts'
import { BoundedMap } from '../../../core/util/bounded-map.ts'
import { onAbort } from '../../../core/util/on-abort.ts'
import { openSemaphore } from '../../../core/util/semaphore.ts'
import type { Semaphore } from '../../../core/util/semaphore.ts'
import { TIMER_LIMIT_MS } from '../../../core/util/timer-limit.ts'
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
const OPTIONAL_CALL_LIMIT = 32
const OPTIONAL_CALL_MS = 5_000
const DELETED_LIMIT = 1_000

export function openPlatforms(registry: Registry, signal: AbortSignal) {
	const waiting = new Map<string, Set<() => void>>()
	/** Deleted channels. Ids are never reused, so the oldest can be dropped. */
	const deleted = new BoundedMap<string, true>(DELETED_LIMIT)
	/** Limits the concurrent calls of each channel. */
	const slots = new Map<string, Semaphore>()
	const optionalCalls = new Counts()

	const notify = (channel_id: string): void => {
		for (const wake of waiting.get(channel_id) ?? []) wake()
	}
	const now = (channel_id: string): ConnectedChannel | undefined => {
		const channel = registry.channel(channel_id)
		const connection = channel?.connection()
		return channel && connection && { channel, connection }
	}
	return {
		/** Undefined if the channel is not connected. */
		now,
		/** Whether this connection has ended, so that what it refuses can be sent by the next one. */
		hasEnded: (channel_id: string, { connection }: ConnectedChannel): boolean =>
			now(channel_id)?.connection !== connection,
		/** Shows operators why `message` (any object) is not sent for some time. Null: it no longer waits. */
		delayed: registry.delayed,
		/** Waits until the channel is connected. Undefined if it was deleted, or is not connected by `until` (ms since 1970). Throws when the signal aborts. */
		async open(channel_id: string, until: number): Promise<ConnectedChannel | undefined> {
			for (;;) {
				signal.throwIfAborted()
				if (Date.now() >= until || deleted.has(channel_id)) return undefined
				const found = now(channel_id)
				if (found) return found
				await waitForChange(channel_id, until - Date.now())
			}
		},
		/**
		 * Waits before a retry. Ends early if the channel is connected with other settings, such as a new token, or was deleted.
		 * Throws when the signal aborts.
		 */
		async pause(channel_id: string, ms: number, { channel }: ConnectedChannel): Promise<void> {
			const until = performance.now() + ms
			for (let left = ms; left > 0 && !deleted.has(channel_id); left = until - performance.now()) {
				signal.throwIfAborted()
				const found = now(channel_id)
				if (found && found.channel !== channel) return
				await waitForChange(channel_id, left)
			}
			signal.throwIfAborted()
		},
		/** Makes a call, within the limit of concurrent calls of the channel. Throws after 60 s; then the outcome is unknown. */
		async call<T>(channel_id: string, make: () => Promise<T>): Promise<T> {
			const semaphore = slots.get(channel_id) ?? openSemaphore(CALL_LIMIT)
			if (!deleted.has(channel_id)) slots.set(channel_id, semaphore)
			const release = await semaphore.acquire()
			try {
				return await within(CALL_MS, 'the platform', make())
			} finally {
				release()
			}
		},
		/**
		 * Makes an optional call, which does not count toward the limit of the others. Throws after 5 s; then the outcome is unknown.
		 * Returns undefined if too many optional calls are running.
		 */
		optionalCall(channel_id: string, make: () => Promise<void>): Promise<void> | undefined {
			if (optionalCalls.of(channel_id) >= OPTIONAL_CALL_LIMIT) return undefined
			optionalCalls.add(channel_id)
			return within(OPTIONAL_CALL_MS, 'the platform', make()).finally(() => optionalCalls.add(channel_id, -1))
		},
		/** The channel is connected or reconnected. */
		connected: notify,
		/** Ends every wait for a deleted channel. */
		forget(channel_id: string): void {
			deleted.set(channel_id, true)
			slots.delete(channel_id)
			notify(channel_id)
		},
	}

	/** Waits until the channel is connected or deleted, for at most `ms`, or until the signal aborts. */
	async function waitForChange(channel_id: string, ms: number): Promise<void> {
		const { promise, resolve } = Promise.withResolvers<void>()
		const all = waiting.get(channel_id) ?? new Set()
		waiting.set(channel_id, all.add(resolve))
		const timer = setTimeout(resolve, Math.min(ms, TIMER_LIMIT_MS)).unref()
		const removeListener = onAbort(signal, resolve)
		await promise
		clearTimeout(timer)
		removeListener()
		all.delete(resolve)
		if (all.size === 0) waiting.delete(channel_id)
	}
}
