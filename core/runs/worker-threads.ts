/**
 * Worker threads, each behind a port. Piscina starts and replaces them; each has one task for as long as it lives, which serves
 * all of its runs: a task and a port for each run would cost more than the rest of what the run does here.
 */
import { createRequire } from 'node:module'
import { MessageChannel, receiveMessageOnPort } from 'node:worker_threads'
import type { MessagePort } from 'node:worker_threads'
import type * as Package from 'piscina'
import { Fault, messageOf } from '../errors.ts'
import type { FromThread, WorkerTask } from '../protocol.ts'

export interface WorkerThreadsOptions {
	/** The worker's module. */
	worker: URL
	threads: number
	heap_mib: number
	/** A thread serves the other end of `port`: each of the first ones, and each that replaces one. Returns what is called once it has ended. */
	opened: (port: MessagePort) => (cause: Fault) => void
	/** A thread ended without being closed; another replaces it. */
	onLost: () => void
	/** Threads no longer start here: what no thread has taken yet will wait forever. */
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

/**
 * Makes Piscina load the worker by `import`: it tries `require` first. Node 24 aborts the process if a thread ends while `require`
 * loads an ES module, as when the gateway stops right after its first run began.
 */
const THREAD_FLAGS = ['--no-experimental-require-module']

export class WorkerThreads {
	readonly #piscina: Package.Piscina
	readonly #options: WorkerThreadsOptions
	/** Threads start, so one that ends does so because of a run. */
	#works = false
	#closed: Promise<void> | undefined
	#isClosing = false

	/** All threads start now, and stay: a thread that starts when it is needed makes its first runs wait. */
	constructor(options: WorkerThreadsOptions) {
		const { worker, threads, heap_mib } = options
		this.#options = options
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

	/** Alive now. */
	get count(): number {
		return this.#piscina.threads.length
	}

	/** Ends the thread of that `worker_threads.threadId`. */
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

	/** Gives a thread its task, and another thread its own when this one ends. */
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

/** The cause of a lost thread whose gateway ended it on purpose: no run brought it down. */
export const DEPARTED = Symbol('its gateway left, as it had announced')

/** For runs whose thread is gone; they may continue on another one. */
export function threadLost(why: string, cause?: unknown): Fault {
	return new Fault('thread_lost', `${why}; the run continues from its journal`, { cause })
}

/** Closes the port of a thread. Returns what the thread had said before. */
export function drain(port: MessagePort): FromThread[] {
	const received: FromThread[] = []
	for (let left = receiveMessageOnPort(port); left; left = receiveMessageOnPort(port))
		received.push(left.message as FromThread)
	port.close()
	return received
}
