/** Determines whether a message was sent although no response was received. */
import { BoundedMap } from '../../core/util/bounded-map.ts'
import type { OutgoingMessage } from '../channels/adapter.ts'
import { isNotThere } from './errors.ts'
import type { Marks } from './marks.ts'

/** Number of ids to check. In a busy group where the bot sees few messages, the message may have a higher id. */
const ID_LIMIT = 30

/** Interrupted searches that are remembered. */
const SEARCHES = 100

type Sought = Pick<OutgoingMessage, 'chat' | 'nonce' | 'reply_to' | 'after'>

export type Find<M extends Sought> = (message: M, mark: string | undefined) => Promise<{ id: string } | undefined>

/**
 * The Bot API cannot read messages. But a bot can edit only its own messages, so an attempt to edit shows whether the bot wrote a
 * message. The search tries to edit the ids after `mark`, and after the message that this one answers or continues, to the expected
 * text. The first id that can be edited, or already has that text, is the message: a chat gets one message at a time, and ids of
 * other known messages are skipped. If the text has changed since it was sent, as in a preview, the edit corrects it. For a file,
 * the caption is edited.
 */
export function openFind<M extends Sought>(edit: (id: number, message: M) => Promise<void>, marks: Marks): Find<M> {
	/** Progress of interrupted searches, by nonce. Telegram limits edits per minute, so the next search continues there. */
	const interrupted = new BoundedMap<string, { id: number; left: number }>(SEARCHES)

	return async (message, mark) => {
		const { chat, nonce, reply_to, after } = message
		const from = Math.max(idOf(mark), idOf(reply_to), idOf(after))
		if (from === 0) return undefined
		const search = interrupted.get(nonce) ?? { id: from + 1, left: ID_LIMIT }
		interrupted.delete(nonce)
		for (; search.left > 0; search.id++) {
			if (marks.knows(chat.id, search.id)) continue
			try {
				await edit(search.id, message)
				marks.saw(chat.id, search.id)
				return { id: String(search.id) }
			} catch (error) {
				if (!isNotThere(error)) {
					interrupted.set(nonce, search)
					throw error
				}
				search.left--
			}
		}
		return undefined
	}
}

function idOf(text: string | undefined): number {
	const id = Number(text)
	return Number.isSafeInteger(id) && id > 0 ? id : 0
}
