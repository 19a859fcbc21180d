import type { DiscordMessage } from './incoming.ts'

/** Messages that wait, in all chats. */
const WAITING = 5_000

/**
 * Messages from the gateway's socket, accepted one after another. A chat that is behind waits until it has caught up. `failed` is
 * called once if a message was not accepted, or too many wait; the inbox is closed then.
 */
export function openInbox(take: (message: DiscordMessage) => Promise<void>, failed: (error: unknown) => void) {
	let waiting: DiscordMessage[] = []
	let behind = new Map<string, DiscordMessage[]>()
	let held = 0
	let state: 'open' | 'paused' | 'closed' = 'open'
	let isTaking = false

	/** Drops all waiting messages; accepts no more. */
	const close = (): void => {
		state = 'closed'
		waiting = []
		behind.clear()
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
				const kept = behind.get(message.channel_id)
				if (kept) {
					kept.push(message)
					held++
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
			if (waiting.length + held > WAITING) fail(new Error(`more than ${WAITING} messages wait to be accepted`))
			else void pump()
		},
		/** Holds everything until `resume`. */
		pause(): void {
			if (state === 'open') state = 'paused'
		},
		/** Resumes, but holds messages of these chats until they are `released`. Chats held before are no longer held. */
		resume(chats: Iterable<string>): void {
			if (state === 'closed') return
			waiting = [...[...behind.values()].flat(), ...waiting]
			held = 0
			behind = new Map([...chats].map((id) => [id, []]))
			state = 'open'
			void pump()
		},
		/** Resumes this chat too, without messages that were accepted elsewhere. */
		release(chat_id: string, taken: ReadonlySet<string>): void {
			const kept = behind.get(chat_id)
			if (!kept) return
			behind.delete(chat_id)
			held -= kept.length
			waiting = [...kept.filter(({ id }) => !taken.has(id)), ...waiting]
			void pump()
		},
		close,
	}
}
