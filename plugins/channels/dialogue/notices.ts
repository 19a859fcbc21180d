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
	/** Says it to a chat without an agent, where nothing else is to be said in the whole channel. */
	hint(channel_id: string, chat: ChatRef & { kind: ChatKind }, text: string, reply_to?: string): void
	/** May a hint be said to this chat? Takes one of those that it may be told in a minute. Never where too many wait already. */
	mayHint(channel_id: string, chat_id: string): boolean
}

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
/** Notices, and whatever else, that wait in one chat. */
const WAITING_LIMIT = 16
const HINTS = 5
const HINT_MS = 60_000
/** Hints that wait in a channel: strangers may be many. */
const HINTS_WAITING_LIMIT = 100
/** Chats whose hints are counted. */
const CHAT_LIMIT = 10_000

export function openNotices(way: Way & { ctx: Context }, lanes: Lanes): Notices {
	const { ctx } = way
	const hinted = new Map<string, { since: number; count: number }>()
	/** Hints that wait, by channel. */
	const hinting = new Map<string, number>()

	const say = async (notice: Notice): Promise<void> => {
		const { text, channel_id, chat, reply_to, until, isHint } = notice
		const id = newId()
		let place: Place = { offset: 0, fence: null }
		for (let n = 0; place.offset < text.length; n++) {
			if (ctx.signal.aborted) return
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
				isHint,
				remember: async () => {},
			})
			if (outcome.status === 'refused')
				ctx.log.debug({ channel_id, reason: outcome.message }, 'a notice could not be given in a chat')
			if (outcome.status !== 'sent') return
			place = outcome.next
		}
	}
	/** False where it is dropped. */
	const queue = (notice: Omit<Notice, 'until'>, done: () => void = () => {}): boolean => {
		const lane = laneOf(notice.channel_id, notice.chat.id)
		if (lanes.length(lane) >= WAITING_LIMIT) return false
		const until = Date.now() + AGE_MS
		lanes.push(lane, () => say({ ...notice, until }).finally(done))
		return true
	}
	return {
		say(channel_id, chat, text, reply_to) {
			queue({ channel_id, chat, text, reply_to, isHint: false })
		},
		hint(channel_id, chat, text, reply_to) {
			const done = (): void => {
				const rest = (hinting.get(channel_id) ?? 1) - 1
				if (rest > 0) hinting.set(channel_id, rest)
				else hinting.delete(channel_id)
			}
			if (queue({ channel_id, chat, text, reply_to, isHint: true }, done))
				hinting.set(channel_id, (hinting.get(channel_id) ?? 0) + 1)
		},
		mayHint(channel_id, chat_id) {
			if ((hinting.get(channel_id) ?? 0) >= HINTS_WAITING_LIMIT) return false
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
