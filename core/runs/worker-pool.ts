/** The threads of one size of the run pool: those of this process. */
import type { MessagePort } from 'node:worker_threads'
import type { Fault } from '../errors.ts'
import type { FromThread } from '../protocol.ts'
import { RunThread } from './run-thread.ts'
import { ThreadGroup } from './thread-group.ts'
import { drain, WorkerThreads } from './worker-threads.ts'

export interface WorkerPoolOptions {
	/** The worker's module. */
	worker: URL
	threads: number
	runs_per_thread: number
	heap_mib: number
	/** A place for a run is free again. */
	onFree: () => void
	/** A thread ended without being closed; another replaces it. */
	onLost: () => void
	/** Threads no longer start here: runs that no thread has taken yet will wait forever. */
	onBroken: (fault: Fault) => void
}

export class WorkerPool extends ThreadGroup {
	readonly #threads: WorkerThreads

	/** All threads start now. */
	constructor({ worker, threads, runs_per_thread, heap_mib, onFree, onLost, onBroken }: WorkerPoolOptions) {
		super(runs_per_thread, onFree)
		this.#threads = new WorkerThreads({
			worker,
			threads,
			heap_mib,
			opened: (port) => this.#opened(port),
			onLost,
			onBroken,
		})
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
		port.on('message', (said: FromThread) => thread.receive(said))
		this.add(thread)
		return (cause) => this.remove(thread, cause)
	}
}
