/** The threads of one size of the run pool: those of this process. */
import type { MessagePort } from 'node:worker_threads'
import type { Fault } from '../errors.ts'
import type { FromThread } from '../protocol.ts'
import { RunThread } from './run-thread.ts'
import { ThreadGroup } from './thread-group.ts'
import { drain, WorkerThreads } from './worker-threads.ts'
import type { WorkerThreadsOptions } from './worker-threads.ts'

export interface WorkerPoolOptions extends Omit<WorkerThreadsOptions, 'opened'> {
	runs_per_thread: number
	/** A place for a run is free again. */
	onFree: () => void
}

export class WorkerPool extends ThreadGroup {
	readonly #threads: WorkerThreads

	/** All threads start now. */
	constructor({ runs_per_thread, onFree, ...options }: WorkerPoolOptions) {
		super(runs_per_thread, onFree)
		this.#threads = new WorkerThreads({ ...options, opened: (port) => this.#opened(port) })
	}

	get threads(): number {
		return this.#threads.count
	}

	/** Ends all threads, and with them the runs that they still have. */
	close(): Promise<void> {
		return this.#threads.close()
	}

	#opened(port: MessagePort): (cause: Fault) => void {
		const thread = new RunThread({
			post: (message) => port.postMessage(message),
			terminate: (id) => this.#threads.terminate(id),
			close: () => drain(port),
		})
		port.on('message', (messages: FromThread) => thread.receive(messages))
		this.add(thread)
		return (cause) => this.remove(thread, cause)
	}
}
