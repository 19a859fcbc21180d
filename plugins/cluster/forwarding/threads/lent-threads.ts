/** The lender's threads for one link. Relays messages between them and the borrower. They start with the borrower's first message. */
import type { MessagePort } from 'node:worker_threads'
import type { Fault } from '../../../../core/errors.ts'
import { messageOf } from '../../../../core/errors.ts'
import type { FromThread } from '../../../../core/protocol.ts'
import { drain, WorkerThreads } from '../../../../core/runs/worker-threads.ts'
import type { WorkerThreadsOptions } from '../../../../core/runs/worker-threads.ts'
import type { FromBorrower, FromLender } from './protocol.ts'

export interface LentThreadsOptions extends Pick<
	WorkerThreadsOptions,
	'worker' | 'threads' | 'heap_mib' | 'onBroken' | 'onLost'
> {
	send(message: FromLender): void
}

interface LentThread {
	port: MessagePort
	/** `worker_threads.threadId`, once the thread has sent its hello. */
	id?: number
}

export function openLentThreads({ send, ...options }: LentThreadsOptions) {
	const byNumber = new Map<number, LentThread>()
	let last = 0
	let threads: WorkerThreads | undefined
	let isClosed = false

	const opened = (port: MessagePort): ((cause: Fault) => void) => {
		const number = ++last
		const thread: LentThread = { port }
		byNumber.set(number, thread)
		const relay = (said: FromThread): void => {
			for (const { message } of said) if (message.kind === 'hello') thread.id = message.thread
			send({ kind: 'said', thread: number, said })
		}
		port.on('message', relay)
		if (number > options.threads) send({ kind: 'opened', thread: number })
		return (cause) => {
			byNumber.delete(number)
			for (const said of drain(port)) relay(said)
			if (!isClosed) send({ kind: 'ended', thread: number, reason: messageOf(cause.cause ?? cause) })
		}
	}
	return {
		receive(message: FromBorrower): void {
			if (isClosed) return
			threads ??= new WorkerThreads({ ...options, opened })
			const thread = byNumber.get(message.thread)
			if (message.kind === 'post') thread?.port.postMessage(message.message)
			else if (thread?.id !== undefined) threads.terminate(thread.id)
		},
		/** Ends the threads and their runs. */
		async close(): Promise<void> {
			isClosed = true
			await threads?.close()
		},
	}
}
