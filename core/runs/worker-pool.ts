/** The threads of one size of the run pool: Piscina, and what it does not handle. */
import { createRequire } from 'node:module'
import type * as Package from 'piscina'
import type { Threads, Verdict } from './active-run.ts'
import { Fault, messageOf } from '../errors.ts'
import type { ToMain, WorkerTask } from '../protocol.ts'

export interface WorkerPoolOptions {
	/** The worker's module. */
	worker: URL
	threads: number
	runs_per_thread: number
	heap_mib: number
	/** A task slot is free again. */
	onFree: () => void
	/** A thread ended without being closed; another replaces it. */
	onLost: () => void
	/** Threads no longer start here: tasks that no thread has taken yet will wait forever. */
	onBroken: (fault: Fault) => void
}

const require = createRequire(import.meta.url)

/** Environment variables that a thread can read. Keys and addresses reach it in its orders only. */
const passedOn = [
	'NODE_COMPILE_CACHE',
	'NODE_USE_ENV_PROXY',
	'HTTP_PROXY',
	'HTTPS_PROXY',
	'NO_PROXY',
	'http_proxy',
	'https_proxy',
	'no_proxy',
	'TZ',
]

export class WorkerPool implements Threads {
	readonly capacity: number
	readonly #piscina: Package.Piscina
	readonly #options: WorkerPoolOptions
	#tasks = 0
	/** Threads start, so one that ends does so because of a run. */
	#works = false
	#closed: Promise<void> | undefined
	#isClosing = false

	/** All threads start now, and stay: a thread that starts when it is needed makes its first runs wait. */
	constructor(options: WorkerPoolOptions) {
		const { worker, threads, runs_per_thread, heap_mib } = options
		this.#options = options
		this.capacity = threads * runs_per_thread
		// With the first run: an idle gateway does not have it in memory.
		const { Piscina } = require('piscina') as typeof Package
		this.#piscina = new Piscina({
			filename: worker.href,
			minThreads: threads,
			maxThreads: threads,
			concurrentTasksPerWorker: runs_per_thread,
			// Waits only for the thread that takes the place of a lost one.
			maxQueue: this.capacity,
			// The threads have sockets and timers of their own while they have no task.
			atomics: 'disabled',
			recordTiming: false,
			resourceLimits: { maxOldGenerationSizeMb: heap_mib },
			env: Object.fromEntries(
				passedOn.flatMap((name) => (process.env[name] === undefined ? [] : [[name, process.env[name]]])),
			),
			// What the main thread was started with, such as a test runner's loader, is not meant for them.
			execArgv: [],
		})
		// The first message of a thread reports that it has loaded the worker's module.
		for (const thread of this.#piscina.threads) thread.once('message', () => (this.#works = true))
		// Emitted when a thread without a task ends, and when one cannot load its module.
		this.#piscina.on('error', (error) => this.#break(error))
		this.#piscina.on('workerDestroy', () => {
			if (!this.#isClosing) options.onLost()
		})
	}

	get free(): number {
		return this.capacity - this.#tasks
	}

	get threads(): number {
		return this.#piscina.threads.length
	}

	async post(task: WorkerTask): Promise<ToMain[] | Verdict> {
		this.#tasks++
		try {
			const last: unknown = await this.#piscina.run(task, { transferList: [task.port] })
			return Array.isArray(last) ? last : []
		} catch (error) {
			return this.#whyNotDone(error)
		} finally {
			this.#tasks--
			this.#options.onFree()
		}
	}

	terminate(thread: number): void {
		const worker = this.#piscina.threads.find((one) => one.threadId === thread)
		// Its exit ends its tasks.
		worker?.terminate().catch(() => {})
	}

	/** Ends all threads, and with them the tasks that they still have. */
	close(): Promise<void> {
		this.#isClosing = true
		this.#closed ??= this.#piscina.destroy()
		return this.#closed
	}

	#whyNotDone(error: unknown): Verdict {
		if (error instanceof DOMException && error.name === 'DataCloneError') {
			const message = `the run's order cannot be handed to a thread: ${error.message}`
			return { status: 'failed', error: { code: 'internal', message }, usage: { input_tokens: 0, output_tokens: 0 } }
		}
		if (!this.#works && !this.#isClosing) return { rejects: this.#break(error) }
		const message = this.#isClosing ? 'the threads are being closed' : `the thread ended: ${messageOf(error)}`
		return { rejects: new Fault('thread_lost', `${message}; the run continues from its journal`, { cause: error }) }
	}

	#break(error: unknown): Fault {
		const what = this.#works ? 'a worker thread failed' : 'no worker thread can be started'
		const fault = new Fault('unavailable', `${what}: ${messageOf(error)}`, { cause: error })
		this.#options.onBroken(fault)
		return fault
	}
}
