/**
 * Ids of messages that a connection has seen, used to find messages that were sent without a response.
 *
 * Telegram has no nonces. But ids increase, and each new id is the next one of its counter: a supergroup has its own counter,
 * while private chats and basic groups share that of the bot's account. So the id of a message is a little higher than the
 * `mark`, the highest id seen before it was sent.
 */
import { BoundedMap } from '../../core/util/bounded-map.ts'
import type { KnownChat } from '../channels/adapter.ts'

/** Limits of ids per counter, and of counters. */
const IDS = 1000
const COUNTERS = 1000
/** Ids of supergroups are lower: they consist of `-100` and the number of the supergroup. */
const SUPERGROUPS_BELOW = -1_000_000_000_000

export type Marks = ReturnType<typeof openMarks>

export function openMarks(known: readonly KnownChat[]) {
	const counters = new BoundedMap<string, { top: number; ids: Set<number> }>(COUNTERS)

	function saw(chat_id: number | string, message_id: number): void {
		const key = counterOf(chat_id)
		const counter = counters.get(key) ?? { top: 0, ids: new Set<number>() }
		counters.set(key, counter)
		counter.top = Math.max(counter.top, message_id)
		counter.ids.add(message_id)
		const [oldest] = counter.ids
		if (oldest !== undefined && counter.ids.size > IDS) counter.ids.delete(oldest)
	}

	for (const { id, last_id, sent_id } of known.toReversed()) {
		for (const message_id of [Number(last_id), Number(sent_id)])
			if (Number.isSafeInteger(message_id)) saw(id, message_id)
	}
	return {
		/** Records the id of a known message. */
		saw,
		/** The highest id of this chat's counter; undefined if none was seen. */
		mark: (chat_id: string): string | undefined => counters.get(counterOf(chat_id))?.top.toString(),
		/** Whether this is the id of a known message. */
		knows: (chat_id: string, message_id: number): boolean =>
			counters.get(counterOf(chat_id))?.ids.has(message_id) === true,
	}
}

function counterOf(chat_id: number | string): string {
	return Number(chat_id) < SUPERGROUPS_BELOW ? String(chat_id) : 'account'
}
