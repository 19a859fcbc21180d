/** How fast messages may follow each other: in one chat, and in all chats of a channel. */
import { setTimeout as sleep } from 'node:timers/promises'
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
export const HOLD_LIMIT_MS = 10_000
/** Above this number of chats, those that are free are forgotten. */
const SWEEP_AT = 1_000

export function openPace() {
	/** When the next message may be sent, by chat and by channel, by the clock of `performance`. */
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
		/** Waits for its turn and takes it. Throws with the signal. */
		async take(channel: LiveChannel, chat: Chat, signal: AbortSignal): Promise<void> {
			signal.throwIfAborted()
			const name = nameOf(channel, chat)
			// While a chat waits, it does not use up a turn of the channel.
			for (let wait; (wait = waitFor(performance.now(), name)) > 0;) await pause(wait, signal)
			const at = reserve(channel, chat, performance.now())
			for (let wait; (wait = at - performance.now()) > 0;) await pause(wait, signal)
		},
		/** Waits for a turn that no other sender waits for. Throws when the signal aborts. */
		async takeLast(channel: LiveChannel, chat: Chat, signal: AbortSignal): Promise<void> {
			signal.throwIfAborted()
			while (!takeNow(channel, chat)) await pause(waitFor(performance.now(), nameOf(channel, chat), channel.id), signal)
		},
		/** Takes a turn if that needs no waiting. */
		takeNow,
		/** The platform said to send nothing there for so long: some seconds at most, then it is asked again. */
		hold(channel: LiveChannel, chat: Chat, ms: number): void {
			const name = nameOf(channel, chat)
			next.set(name, Math.max(next.get(name) ?? 0, performance.now() + Math.min(ms, HOLD_LIMIT_MS)))
		},
	}
}

/** The longest delay of a timer; a longer wait takes several. */
const TIMER_LIMIT_MS = 2 ** 31 - 1

async function pause(ms: number, signal: AbortSignal): Promise<void> {
	await sleep(Math.min(ms, TIMER_LIMIT_MS), undefined, { signal, ref: false })
}
