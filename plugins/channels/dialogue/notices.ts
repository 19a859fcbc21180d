/** Short messages of the gateway itself: hints and replies to commands. They are only briefly relevant, so they are not stored. */
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
	/** Deadline, in ms since 1970. */
	until: number
	isHint: boolean
}

const AGE_MS = 10 * 60_000
/** Limit of queued jobs of a chat, beyond which its notices are dropped. */
const WAITING_LIMIT = 16
/** Hints per chat in `HINT_MS`. */
const HINTS = 5
const HINT_MS = 60_000
/** Limit of queued hints of a channel, since many strangers may write. */
const HINTS_WAITING_LIMIT = 100
/** Number of chats whose hints are counted. */
const CHAT_LIMIT = 10_000

export function openNotices(deps: SendDeps, queues: ChatQueues) {
	const { ctx } = deps
	const hinted = new BoundedMap<string, { since: number; count: number }>(CHAT_LIMIT)
	/** Number of queued hints, by channel. */
	const queuedHints = new Counts()

	const send = async (notice: Notice): Promise<void> => {
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
				persist: async () => {},
			})
			if (outcome.status === 'refused')
				ctx.log.debug({ channel_id, reason: outcome.message }, 'a notice could not be sent to a chat')
			if (outcome.status !== 'sent') return
			place = outcome.next
		}
	}
	const queueAs =
		(isHint: boolean) =>
		(channel_id: string, chat: Notice['chat'], text: string, reply_to?: string): void => {
			const key = chatKey(channel_id, chat.id)
			if (queues.length(key) >= WAITING_LIMIT) return
			const notice = { channel_id, chat, text, reply_to, until: Date.now() + AGE_MS, isHint }
			if (isHint) queuedHints.add(channel_id)
			queues.push(key, () => send(notice).finally(() => isHint && queuedHints.add(channel_id, -1)))
		}
	return {
		/** Queues a notice. Drops it if too many jobs of the chat are queued, or if it cannot be sent in time. */
		say: queueAs(false),
		/** Queues a low-priority notice for a chat without an agent, sent once no other message of the channel is waiting. */
		hint: queueAs(true),
		/** Whether the chat may get a hint, which then counts toward its limit. False if too many hints of the channel are queued. */
		mayHint(channel_id: string, chat_id: string): boolean {
			if (queuedHints.of(channel_id) >= HINTS_WAITING_LIMIT) return false
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
