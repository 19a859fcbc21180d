/** Work on chats: a serial queue for each chat. */
import type { Logger } from '../../../core/log/log.ts'
import { SerialQueues } from '../../shared/serial-queues.ts'

/** Chats are named as `chatKey` does. A job that fails is logged. */
export type ChatQueues = ReturnType<typeof openChatQueues>

export function openChatQueues(log: Logger) {
	const queues = new SerialQueues()
	/** Of jobs that were offered. */
	const wanted = new Map<string, AbortController>()

	const push = (chat: string, job: () => Promise<void>): void => {
		wanted.get(chat)?.abort()
		queues.run(chat, job).catch((error: unknown) => log.error({ err: error }, 'the work on a message to a chat failed'))
	}
	return {
		push,
		/** Starts the job now, or returns false if the chat's queue is not empty. `wanted` aborts once another job waits behind it. */
		offer(chat: string, job: (wanted: AbortSignal) => Promise<void>): boolean {
			if (queues.length(chat) > 0) return false
			const controller = new AbortController()
			push(chat, () => job(controller.signal).finally(() => wanted.delete(chat)))
			wanted.set(chat, controller)
			return true
		},
		/** Jobs that wait or are running. */
		length: (chat: string): number => queues.length(chat),
		[Symbol.asyncDispose]: () => queues.idle(),
	}
}

export function chatKey(channel_id: string, chat_id: string): string {
	return `${channel_id} ${chat_id}`
}
