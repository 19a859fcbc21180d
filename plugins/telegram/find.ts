/** Was a message sent although no response was received? */
import type { OutgoingMessage } from '../channels/adapter.ts'
import type { BotApi } from './api.ts'
import { isNotThere } from './errors.ts'
import type { Marks } from './marks.ts'
import * as outgoing from './outgoing.ts'

/** Ids that are looked at. In a lively group where the bot sees little of what is said, a message may lie further on. */
const LOOKED_AT = 30

/** Interrupted searches that are remembered. */
const SEARCHES = 100

export type Find = (message: OutgoingMessage, mark: string | undefined) => Promise<{ id: string } | undefined>

/**
 * The Bot API cannot read a message, but tells by an attempt to edit one whether the bot wrote it: it changes the bot's own
 * only. So the ids behind `mark`, and behind what the message answers or goes on from, are edited to the text that it
 * should have. One that can be edited, or has that text already, is the message: messages of one chat go out one after
 * another, and what this connection knows to be another one is left out. Should the message have been sent with a text that
 * changed since, such as an answer in the making, it is now the right one.
 */
export function openFind(api: BotApi, marks: Marks): Find {
	/** By nonce, how far a search came: where Telegram takes only so many edits in a minute, the next one goes on there. */
	const begun = new Map<string, { id: number; left: number }>()

	return async (message, mark) => {
		const { chat, nonce, reply_to, after } = message
		const from = Math.max(idOf(mark), idOf(reply_to), idOf(after))
		if (from === 0) return undefined
		const search = begun.get(nonce) ?? { id: from + 1, left: LOOKED_AT }
		begun.delete(nonce)
		for (; search.left > 0; search.id++) {
			if (marks.knows(chat.id, search.id)) continue
			try {
				await outgoing.edit(api, search.id, message)
				marks.saw(chat.id, search.id)
				return { id: String(search.id) }
			} catch (error) {
				if (!isNotThere(error)) {
					begun.set(nonce, search)
					const [oldest] = begun.keys()
					if (oldest !== undefined && begun.size > SEARCHES) begun.delete(oldest)
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
