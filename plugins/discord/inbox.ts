import type { DiscordMessage } from './incoming.ts'

/** Limit of waiting messages of all chats. */
const WAITING_LIMIT = 5_000

/**
 * Accepts messages from the socket one after another. Messages of a chat that is still catching up are held back. If a message cannot
 * be accepted, or too many wait, the inbox closes and calls `failed` once.
 */
export function openInbox(take: (message: DiscordMessage) => Promise<void>, failed: (error: unknown) => void) {
	let waiting: DiscordMessage[] = []
	/** Held messages of chats that are catching up. */
	let held = new Map<string, DiscordMessage[]>()
	let heldCount = 0
	let state: 'open' | 'paused' | 'closed' = 'open'
	let isTaking = false

	/** Drops all waiting messages; accepts no more. */
	const close = (): void => {
		state = 'closed'
		waiting = []
		held.clear()
	}
	const fail = (error: unknown): void => {
		if (state === 'closed') return
		close()
		failed(error)
	}
	const pump = async (): Promise<void> => {
		if (isTaking) return
		isTaking = true
		try {
			while (state === 'open') {
				const message = waiting.shift()
				if (!message) break
				const ofChat = held.get(message.channel_id)
				if (ofChat) {
					ofChat.push(message)
					heldCount++
				} else await take(message)
			}
		} catch (error) {
			fail(error)
		} finally {
			isTaking = false
		}
	}
	return {
		push(message: DiscordMessage): void {
			if (state === 'closed') return
			waiting.push(message)
			if (waiting.length + heldCount > WAITING_LIMIT)
				fail(new Error(`more than ${WAITING_LIMIT} messages wait to be accepted`))
			else void pump()
		},
		/** Holds everything until `resume`. */
		pause(): void {
			if (state === 'open') state = 'paused'
		},
		/** Resumes, but holds messages of these chats until `release`. Other chats are no longer held. */
		resume(chats: Iterable<string>): void {
			if (state === 'closed') return
			waiting = [...[...held.values()].flat(), ...waiting]
			heldCount = 0
			held = new Map([...chats].map((id) => [id, []]))
			state = 'open'
			void pump()
		},
		/** Stops holding a chat. Drops held messages that were accepted while it caught up. */
		release(chat_id: string, accepted: ReadonlySet<string>): void {
			const ofChat = held.get(chat_id)
			if (!ofChat) return
			held.delete(chat_id)
			heldCount -= ofChat.length
			waiting = [...ofChat.filter(({ id }) => !accepted.has(id)), ...waiting]
			void pump()
		},
		close,
	}
}
