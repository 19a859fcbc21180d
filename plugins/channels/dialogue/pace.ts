/** How fast messages may follow each other: in one chat, and in all chats of a channel. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { ChatKind } from '../adapter.ts'
import type { LiveChannel } from '../parts.ts'

interface Chat {
	id: string
	kind: ChatKind
}

export interface Pace {
	/** Waits for its turn and takes it. Throws with the signal. */
	take(channel: LiveChannel, chat: Chat, signal: AbortSignal): Promise<void>
	/** Takes a turn where that needs no waiting. */
	takeNow(channel: LiveChannel, chat: Chat): boolean
	/** The platform said to send nothing there for so long. */
	hold(channel: LiveChannel, chat: Chat, ms: number): void
}

const CHAT_MS = 1_000
const CHANNEL_MS = 35
/** Chats that are remembered before those whose time has come are forgotten. */
const SWEEP_AT = 1_000

export function openPace(): Pace {
	/** When the next message may go, by chat and by channel; on the clock of `performance`. */
	const next = new Map<string, number>()

	const nameOf = (channel: LiveChannel, { id }: Chat): string => `${channel.id} ${id}`
	const reserve = (channel: LiveChannel, chat: Chat, now: number): number => {
		const name = nameOf(channel, chat)
		const { chat_ms = CHAT_MS, group_ms = chat_ms, channel_ms = CHANNEL_MS } = channel.can.pace ?? {}
		const at = Math.max(now, next.get(name) ?? 0, next.get(channel.id) ?? 0)
		if (next.size > SWEEP_AT) for (const [key, time] of next) if (time <= now) next.delete(key)
		next.set(name, at + (chat.kind === 'group' ? group_ms : chat_ms))
		next.set(channel.id, at + channel_ms)
		return at
	}
	return {
		async take(channel, chat, signal) {
			signal.throwIfAborted()
			const name = nameOf(channel, chat)
			// A chat that must wait takes no turn of the channel from the others meanwhile.
			for (;;) {
				const now = performance.now()
				const free = next.get(name) ?? 0
				if (free <= now) break
				await sleep(free - now, undefined, { signal, ref: false })
			}
			const wait = reserve(channel, chat, performance.now()) - performance.now()
			if (wait > 0) await sleep(wait, undefined, { signal, ref: false })
		},
		takeNow(channel, chat) {
			const now = performance.now()
			const isFree = (next.get(nameOf(channel, chat)) ?? 0) <= now && (next.get(channel.id) ?? 0) <= now
			if (isFree) reserve(channel, chat, now)
			return isFree
		},
		hold(channel, chat, ms) {
			const name = nameOf(channel, chat)
			next.set(name, Math.max(next.get(name) ?? 0, performance.now() + ms))
		},
	}
}
