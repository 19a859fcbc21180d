/** Was a message sent although no response was received? */
import { BoundedMap } from '../../core/util/bounded-map.ts'
import type { OutgoingMessage } from '../channels/adapter.ts'
import { isNotThere } from './errors.ts'
import type { Marks } from './marks.ts'

/** Number of ids that are checked. In a busy group where the bot sees few messages, the message may have a higher id. */
const LOOKED_AT = 30

/** Interrupted searches that are remembered. */
const SEARCHES = 100

type Sought = Pick<OutgoingMessage, 'chat' | 'nonce' | 'reply_to' | 'after'>

export type Find<M extends Sought> = (message: M, mark: string | undefined) => Promise<{ id: string } | undefined>

/**
 * The Bot API cannot read a message, but an attempt to edit one shows whether the bot wrote it, since a bot can edit only its
 * own messages. So the messages with ids after `mark`, and after the message that this one answers or continues, are edited to
 * the expected text. One that can be edited, or already has that text, is the message: messages of one chat are sent one after
 * another, and ids that this connection knows as other messages are skipped. If the message was sent with a text that has
 * changed since, such as an unfinished answer, the edit corrects it. Of a file, the caption is edited.
 */
export function openFind<M extends Sought>(edit: (id: number, message: M) => Promise<void>, marks: Marks): Find<M> {
	/** By nonce, how far a search got: Telegram limits edits per minute, and the next search continues there. */
	const begun = new BoundedMap<string, { id: number; left: number }>(SEARCHES)

	return async (message, mark) => {
		const { chat, nonce, reply_to, after } = message
		const from = Math.max(idOf(mark), idOf(reply_to), idOf(after))
		if (from === 0) return undefined
		const search = begun.get(nonce) ?? { id: from + 1, left: LOOKED_AT }
		begun.delete(nonce)
		for (; search.left > 0; search.id++) {
			if (marks.knows(chat.id, search.id)) continue
			try {
				await edit(search.id, message)
				marks.saw(chat.id, search.id)
				return { id: String(search.id) }
			} catch (error) {
				if (!isNotThere(error)) {
					begun.set(nonce, search)
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
