/** Short words of the gateway's own: hints, and what commands answer. They matter only for a while, and are not kept. */
import type { Context } from '../../../core/plugin.ts'
import { newId } from '../../../core/ids.ts'
import type { ChatKind, ChatRef } from '../adapter.ts'
import type { Lanes } from './lanes.ts'
import { laneOf } from './presence.ts'
import { nonceOf } from './records.ts'
import type { Place } from './split.ts'
import { transmit } from './transmit.ts'
import type { Way } from './transmit.ts'

export interface Notices {
	/** Says it once the chat is free. Dropped where too many wait there, or it could not be said in time. */
	say(channel_id: string, chat: ChatRef & { kind: ChatKind }, text: string, reply_to?: string): void
	/** May a hint be said to this chat? Takes one of those that it may be told in a minute. */
	mayHint(channel_id: string, chat_id: string): boolean
}

const AGE_MS = 10 * 60_000
/** Notices, and whatever else, that wait in one chat. */
const WAITING_LIMIT = 16
const HINTS = 5
const HINT_MS = 60_000
/** Chats whose hints are counted. */
const CHAT_LIMIT = 10_000

export function openNotices(way: Way & { ctx: Context }, lanes: Lanes): Notices {
	const { ctx } = way
	const hinted = new Map<string, { since: number; count: number }>()
	return {
		say(channel_id, chat, text, reply_to) {
			const lane = laneOf(channel_id, chat.id)
			if (lanes.length(lane) >= WAITING_LIMIT) return
			const until = Date.now() + AGE_MS
			lanes.push(lane, async () => {
				if (ctx.signal.aborted) return
				const id = newId()
				let place: Place = { offset: 0, fence: null }
				for (let n = 0; place.offset < text.length; n++) {
					const outcome = await transmit(way, {
						channel_id,
						chat,
						...(reply_to !== undefined && chat.kind === 'group' && n === 0 && { reply_to }),
						nonce: nonceOf(id, n),
						source: text,
						place,
						attempt: null,
						preview: null,
						until,
						remember: async () => {},
					})
					if (outcome.status === 'refused')
						ctx.log.info({ channel_id, reason: outcome.message }, 'a hint could not be given in a chat')
					if (outcome.status !== 'sent') return
					place = outcome.next
				}
			})
		},
		mayHint(channel_id, chat_id) {
			const name = laneOf(channel_id, chat_id)
			const now = performance.now()
			const before = hinted.get(name)
			const bucket = before && now < before.since + HINT_MS ? before : { since: now, count: 0 }
			if (bucket.count >= HINTS) return false
			bucket.count++
			// The longest known one goes: none of ten thousand chats gets more by that than its share.
			if (!before && hinted.size >= CHAT_LIMIT) hinted.delete(hinted.keys().next().value ?? '')
			hinted.set(name, bucket)
			return true
		},
	}
}
