/** Short messages of the gateway itself: hints, and replies to commands. They matter only for a short time, and are not stored. */
import { newId } from '../../../core/util/ids.ts'
import { BoundedMap } from '../../../core/util/bounded-map.ts'
import type { ChatKind, ChatRef } from '../adapter.ts'
import { chatKey } from './chat-queues.ts'
import type { ChatQueues } from './chat-queues.ts'
import { Counts } from '../../../core/util/counts.ts'
import { nonceOf } from './records.ts'
import type { SplitPosition } from './split.ts'
import { transmit } from './transmit.ts'
import type { SendDeps } from './transmit.ts'

export type Notices = ReturnType<typeof openNotices>

interface Notice {
	channel_id: string
	chat: ChatRef & { kind: ChatKind }
	text: string
	reply_to: string | undefined
	/** When it is too late, ms since 1970. */
	until: number
	isHint: boolean
}

const AGE_MS = 10 * 60_000
/** Jobs, such as notices, that wait in one chat. */
const WAITING_LIMIT = 16
const HINTS = 5
const HINT_MS = 60_000
/** Hints that wait in a channel: there may be many strangers. */
const HINTS_WAITING_LIMIT = 100
/** Chats whose hints are counted. */
const CHAT_LIMIT = 10_000

export function openNotices(deps: SendDeps, queues: ChatQueues) {
	const { ctx } = deps
	const hinted = new BoundedMap<string, { since: number; count: number }>(CHAT_LIMIT)
	/** Hints that wait, by channel. */
	const hinting = new Counts()

	const say = async (notice: Notice): Promise<void> => {
		const { text, channel_id, chat, reply_to, until, isHint } = notice
		const id = newId()
		let place: SplitPosition = { offset: 0, fence: null }
		for (let n = 0; place.offset < text.length; n++) {
			if (ctx.signal.aborted) return
			const outcome = await transmit(deps, {
				channel_id,
				chat,
				...(reply_to !== undefined && chat.kind === 'group' && n === 0 && { reply_to }),
				nonce: nonceOf(id, n),
				source: text,
				place,
				attempt: null,
				preview: null,
				until,
				isHint,
				remember: async () => {},
			})
			if (outcome.status === 'refused')
				ctx.log.debug({ channel_id, reason: outcome.message }, 'a notice could not be sent to a chat')
			if (outcome.status !== 'sent') return
			place = outcome.next
		}
	}
	/** False if it was dropped. */
	const queue = (notice: Omit<Notice, 'until'>, done: () => void = () => {}): boolean => {
		const key = chatKey(notice.channel_id, notice.chat.id)
		if (queues.length(key) >= WAITING_LIMIT) return false
		const until = Date.now() + AGE_MS
		queues.push(key, () => say({ ...notice, until }).finally(done))
		return true
	}
	return {
		/** Sends it once the chat is free. Dropped if too many wait there, or it could not be sent in time. */
		say(channel_id: string, chat: ChatRef & { kind: ChatKind }, text: string, reply_to?: string): void {
			queue({ channel_id, chat, text, reply_to, isHint: false })
		},
		/** Sends it to a chat without an agent, once nothing else waits to be sent in the channel. */
		hint(channel_id: string, chat: ChatRef & { kind: ChatKind }, text: string, reply_to?: string): void {
			const done = (): void => hinting.add(channel_id, -1)
			if (queue({ channel_id, chat, text, reply_to, isHint: true }, done)) hinting.add(channel_id)
		},
		/** Whether this chat may get a hint; counts it toward the limit per minute. False if too many hints wait in the channel. */
		mayHint(channel_id: string, chat_id: string): boolean {
			if (hinting.of(channel_id) >= HINTS_WAITING_LIMIT) return false
			const name = chatKey(channel_id, chat_id)
			const now = performance.now()
			const before = hinted.get(name)
			const bucket = before && now < before.since + HINT_MS ? before : { since: now, count: 0 }
			if (bucket.count >= HINTS) return false
			bucket.count++
			hinted.set(name, bucket)
			return true
		},
	}
}
