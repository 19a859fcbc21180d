/**
 * Worker threads, each behind a port. Piscina starts and replaces them. Each has one task for its whole life, which serves all of
 * its runs: a task and a port for each run would cost more than everything else that a run does here.
 */
import { createRequire } from 'node:module'
import { MessageChannel, receiveMessageOnPort } from 'node:worker_threads'
import type { MessagePort } from 'node:worker_threads'
import type * as Package from 'piscina'
import { Fault, messageOf } from '../errors.ts'
import type { FromThread, WorkerTask } from '../protocol.ts'
import { RunThread } from './run-thread.ts'
import { ThreadGroup } from './thread-group.ts'

export interface WorkerThreadsOptions {
	/** The worker's module. */
	worker: URL
	threads: number
	heap_mib: number
	/** Called for each thread, replacements included, which serves the other end of `port`. Returns a function to call once it has ended. */
	opened: (port: MessagePort) => (cause: Fault) => void
	/** A thread ended without being closed; another replaces it. */
	onLost: () => void
	/** Threads no longer start: runs that no thread has accepted yet would wait forever. */
	onBroken: (fault: Fault) => void
}

const require = createRequire(import.meta.url)

/** Environment variables that a thread can read. It gets keys and addresses only in its orders. */
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

/**
 * Makes Piscina load the worker with `import`; by default it tries `require` first. Node 24 aborts the process if a thread ends
 * while `require` loads an ES module, for example when the gateway stops right after its first run began.
 */
const THREAD_FLAGS = ['--no-experimental-require-module']

export class WorkerThreads {
	readonly #piscina: Package.Piscina
	readonly #options: WorkerThreadsOptions
	/** A thread has started, so a thread that ends does so because of a run. */
	#works = false
	#closed: Promise<void> | undefined
	#isClosing = false

	/** All threads start now, and stay: a thread that starts on demand would make its first runs wait. */
	constructor(options: WorkerThreadsOptions) {
		const { worker, threads, heap_mib } = options
		this.#options = options
		// Loaded here, with the first run, to keep it out of an idle gateway's memory.
		const { Piscina } = require('piscina') as typeof Package
		this.#piscina = new Piscina({
			filename: worker.href,
			minThreads: threads,
			maxThreads: threads,
			// A task waits only for the replacement of a lost thread.
			maxQueue: threads,
			// `Atomics.wait` would block the sockets and timers of a thread without a task.
			atomics: 'disabled',
			recordTiming: false,
			resourceLimits: { maxOldGenerationSizeMb: heap_mib },
			env: Object.fromEntries(
				passedOn.flatMap((name) => (process.env[name] === undefined ? [] : [[name, process.env[name]]])),
			),
			// Not the flags of the main thread, such as a test runner's loader.
			execArgv: THREAD_FLAGS,
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

	/** The number of live threads. */
	get count(): number {
		return this.#piscina.threads.length
	}

	/** Ends the thread with that `worker_threads.threadId`. */
	terminate(id: number): void {
		const worker = this.#piscina.threads.find((one) => one.threadId === id)
		// Its exit ends its task.
		worker?.terminate().catch(() => {})
	}

	/** Ends all threads. */
	close(): Promise<void> {
		this.#isClosing = true
		this.#closed ??= this.#piscina.destroy()
		return this.#closed
	}

	/** Starts the task of a thread, and another task for its replacement when it ends. */
	#serve(): void {
		const { port1, port2 } = new MessageChannel()
		const over = this.#options.opened(port1)
		const ended = (error: unknown): void => {
			const why = this.#whyEnded(error)
			if (this.#works && !this.#isClosing) this.#serve()
			over(why)
		}
		this.#piscina
			.run({ port: port2 } satisfies WorkerTask, { transferList: [port2] })
			.then(() => ended(new Error('its task is over')), ended)
	}

	#whyEnded(error: unknown): Fault {
		if (!this.#works && !this.#isClosing) return this.#break(error)
		return threadLost(this.#isClosing ? 'the threads are being closed' : `the thread ended: ${messageOf(error)}`, error)
	}

	#break(error: unknown): Fault {
		const what = this.#works ? 'a worker thread failed' : 'no worker thread can be started'
		const fault = new Fault('unavailable', `${what}: ${messageOf(error)}`, { cause: error })
		this.#options.onBroken(fault)
		return fault
	}
}

interface WorkerPoolOptions extends Omit<WorkerThreadsOptions, 'opened'> {
	runs_per_thread: number
	/** A place for a run is free again. */
	onFree: () => void
}

/** The threads of this process that execute runs. */
export class WorkerPool extends ThreadGroup {
	readonly #threads: WorkerThreads

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

/** The cause of a lost thread whose gateway ended it on purpose, not because of a run. */
export const DEPARTED = Symbol('its gateway left, as it had announced')

/** The error of runs whose thread was lost; they may continue on another one. */
export function threadLost(why: string, cause?: unknown): Fault {
	return new Fault('thread_lost', `${why}; the run continues from its journal`, { cause })
}

/** Closes the port of a thread. Returns the messages that had arrived and were not received yet. */
export function drain(port: MessagePort): FromThread[] {
	const received: FromThread[] = []
	for (let left = receiveMessageOnPort(port); left; left = receiveMessageOnPort(port))
		received.push(left.message as FromThread)
	port.close()
	return received
}
