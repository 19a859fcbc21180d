/**
 * The threads of one size of the run pool. Piscina starts and replaces them; each has one task for as long as it lives, which
 * serves all of its runs: a task and a port for each run would cost more than the rest of what the run does here.
 */
import { createRequire } from 'node:module'
import type * as Package from 'piscina'
import { Fault, messageOf } from '../errors.ts'
import type { WorkerTask } from '../protocol.ts'
import { RunThread } from './run-thread.ts'
import type { Passenger, Seat } from './run-thread.ts'

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

export class WorkerPool {
	readonly capacity: number
	readonly #piscina: Package.Piscina
	readonly #options: WorkerPoolOptions
	readonly #threads = new Set<RunThread>()
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
			// Waits only for the thread that takes the place of a lost one.
			maxQueue: threads,
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
		for (let n = 0; n < threads; n++) this.#serve()
	}

	/** Places for runs. */
	get free(): number {
		let free = 0
		for (const { load } of this.#threads) free += Math.max(0, this.#options.runs_per_thread - load)
		return free
	}

	get threads(): number {
		return this.#piscina.threads.length
	}

	/** On the thread that has the fewest runs. */
	seat(run: Passenger): Seat {
		const [first, ...others] = this.#threads
		if (!first) throw new TypeError('no thread has a free place')
		const seat = others.reduce((least, thread) => (thread.load < least.load ? thread : least), first).seat(run)
		return {
			...seat,
			leave: () => {
				seat.leave()
				this.#options.onFree()
			},
		}
	}

	/** Gives a thread its task, and another thread its own when this one ends. */
	#serve(): void {
		const thread = new RunThread((id) => {
			const worker = this.#piscina.threads.find((one) => one.threadId === id)
			// Its exit ends its task.
			worker?.terminate().catch(() => {})
		})
		this.#threads.add(thread)
		const ended = (error: unknown): void => {
			this.#threads.delete(thread)
			const why = this.#whyEnded(error)
			if (this.#works && !this.#isClosing) this.#serve()
			thread.close(why)
			this.#options.onFree()
		}
		const { farPort } = thread
		this.#piscina
			.run({ port: farPort } satisfies WorkerTask, { transferList: [farPort] })
			.then(() => ended(new Error('its task is over')), ended)
	}

	/** Ends all threads, and with them the runs that they still have. */
	close(): Promise<void> {
		this.#isClosing = true
		this.#closed ??= this.#piscina.destroy()
		return this.#closed
	}

	#whyEnded(error: unknown): Fault {
		if (!this.#works && !this.#isClosing) return this.#break(error)
		const message = this.#isClosing ? 'the threads are being closed' : `the thread ended: ${messageOf(error)}`
		return new Fault('thread_lost', `${message}; the run continues from its journal`, { cause: error })
	}

	#break(error: unknown): Fault {
		const what = this.#works ? 'a worker thread failed' : 'no worker thread can be started'
		const fault = new Fault('unavailable', `${what}: ${messageOf(error)}`, { cause: error })
		this.#options.onBroken(fault)
		return fault
	}
}
