/** A serial queue of jobs for each chat. */
import type { Logger } from '../../../core/log/log.ts'
import { SerialQueues } from '../../shared/serial-queues.ts'

/** Chats are identified by `chatKey`. Failed jobs are logged. */
export type ChatQueues = ReturnType<typeof openChatQueues>

export function openChatQueues(log: Logger) {
	const queues = new SerialQueues()
	/** Controllers of offered jobs, by chat. */
	const offered = new Map<string, AbortController>()

	const push = (chat: string, job: () => Promise<void>): void => {
		offered.get(chat)?.abort()
		queues.run(chat, job).catch((error: unknown) => log.error({ err: error }, 'a job for a chat failed'))
	}
	return {
		push,
		/** Starts a low-priority job, or returns false if the chat's queue is not empty. `yielding` aborts once another job is queued. */
		offer(chat: string, job: (yielding: AbortSignal) => Promise<void>): boolean {
			if (queues.length(chat) > 0) return false
			const controller = new AbortController()
			push(chat, () => job(controller.signal).finally(() => offered.delete(chat)))
			offered.set(chat, controller)
			return true
		},
		/** Number of queued and running jobs. */
		length: (chat: string): number => queues.length(chat),
		[Symbol.asyncDispose]: () => queues.idle(),
	}
}

export function chatKey(channel_id: string, chat_id: string): string {
	return `${channel_id} ${chat_id}`
}
