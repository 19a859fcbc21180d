/** Rate limits of outgoing messages: per chat, and for all chats of a channel. */
import { setTimeout as sleep } from 'node:timers/promises'
import { TIMER_LIMIT_MS } from '../../../core/util/timer-limit.ts'
import type { ChatKind } from '../adapter.ts'
import type { LiveChannel } from '../parts.ts'
import { chatKey } from './chat-queues.ts'

interface Chat {
	id: string
	kind: ChatKind
}

export type Pace = ReturnType<typeof openPace>

const CHAT_MS = 1_000
const CHANNEL_MS = 35
/** Limit of `hold`. */
export const HOLD_LIMIT_MS = 10_000
/** Above this number of entries, expired ones are deleted. */
const SWEEP_AT = 1_000

export function openPace() {
	/** When the next message may be sent, by chat and by channel, in terms of `performance.now()`. */
	const next = new Map<string, number>()

	const nameOf = (channel: LiveChannel, { id }: Chat): string => chatKey(channel.id, id)
	const reserve = (channel: LiveChannel, chat: Chat, now: number): number => {
		const name = nameOf(channel, chat)
		const { chat_ms = CHAT_MS, group_ms = chat_ms, channel_ms = CHANNEL_MS } = channel.can.pace ?? {}
		const at = Math.max(now, next.get(name) ?? 0, next.get(channel.id) ?? 0)
		if (next.size > SWEEP_AT) for (const [key, time] of next) if (time <= now) next.delete(key)
		next.set(name, at + (chat.kind === 'group' ? group_ms : chat_ms))
		next.set(channel.id, at + channel_ms)
		return at
	}
	const takeNow = (channel: LiveChannel, chat: Chat): boolean => {
		const now = performance.now()
		const isFree = waitFor(now, nameOf(channel, chat), channel.id) === 0
		if (isFree) reserve(channel, chat, now)
		return isFree
	}
	/** Milliseconds until all of these are free. */
	const waitFor = (now: number, ...names: string[]): number =>
		Math.max(0, ...names.map((name) => (next.get(name) ?? 0) - now))

	return {
		/** Waits until a message may be sent, and counts it. Throws when the signal aborts. */
		async take(channel: LiveChannel, chat: Chat, signal: AbortSignal): Promise<void> {
			signal.throwIfAborted()
			const name = nameOf(channel, chat)
			// A chat that waits for its own limit does not use the channel's.
			for (let wait; (wait = waitFor(performance.now(), name)) > 0;) await pause(wait, signal)
			const at = reserve(channel, chat, performance.now())
			for (let wait; (wait = at - performance.now()) > 0;) await pause(wait, signal)
		},
		/** `take` with low priority: waits until no other sender waits. Throws when the signal aborts. */
		async takeLast(channel: LiveChannel, chat: Chat, signal: AbortSignal): Promise<void> {
			signal.throwIfAborted()
			while (!takeNow(channel, chat)) await pause(waitFor(performance.now(), nameOf(channel, chat), channel.id), signal)
		},
		/** `take` if no wait is needed; otherwise returns false. */
		takeNow,
		/** Blocks a chat for the time that the platform requested, at most 10 s; then sending is tried again. */
		hold(channel: LiveChannel, chat: Chat, ms: number): void {
			const name = nameOf(channel, chat)
			next.set(name, Math.max(next.get(name) ?? 0, performance.now() + Math.min(ms, HOLD_LIMIT_MS)))
		},
	}
}

/** Callers repeat a wait that is longer than a timer's limit. */
async function pause(ms: number, signal: AbortSignal): Promise<void> {
	await sleep(Math.min(ms, TIMER_LIMIT_MS), undefined, { signal, ref: false })
}
