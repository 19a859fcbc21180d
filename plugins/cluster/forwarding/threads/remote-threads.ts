/** Threads that another gateway lends: their runs, as this side of a link has them. */
import type { FromThread, ToThread } from '../../../../core/protocol.ts'
import { RunThread } from '../../../../core/runs/run-thread.ts'
import { ThreadGroup } from '../../../../core/runs/thread-group.ts'
import type { RemoteGroup, RemoteGroupEvents } from '../../../../core/runs/thread-group.ts'
import { DEPARTED, threadLost } from '../../../../core/runs/worker-threads.ts'

/** What another gateway lends, and how its threads are reached. The numbers of threads are the lender's. */
export interface RemoteThreadsOptions {
	/** The lender, for people: its machine and process. */
	name: string
	/** How many it has at first; their numbers are 1 to this one. */
	threads: number
	/** Runs that one thread works on side by side. */
	runs_per_thread: number
	/** Throws if the message cannot be cloned. */
	post(thread: number, message: ToThread): void
	/** Ends a thread. */
	terminate(thread: number): void
	/** False while messages are not taken as fast as they come: further runs go elsewhere. */
	isReady(): boolean
	/** Gives the threads back; `close` must follow. Called when they are no longer needed. */
	end(reason: string): void
}

/** Of one lender at the same time: more than it may have, since one that is lost is replaced before it is gone. */
const MOST_AT_ONCE = 128

export class RemoteThreads extends ThreadGroup implements RemoteGroup {
	readonly name: string
	readonly #options: RemoteThreadsOptions
	readonly #events: RemoteGroupEvents
	readonly #byNumber = new Map<number, RunThread>()
	#isLeaving = false

	/** `places` on each thread: `runs_per_thread` and a share of the reserve. */
	constructor(options: RemoteThreadsOptions, places: number, events: RemoteGroupEvents) {
		super(places, () => {
			events.onFree()
			this.#checkLeft()
		})
		this.name = options.name
		this.#options = options
		this.#events = events
		for (let number = 1; number <= options.threads; number++) this.#add(number)
	}

	get threads(): number {
		return this.#isLeaving ? 0 : this.#byNumber.size
	}

	get capacity(): number {
		return this.threads * this.#options.runs_per_thread
	}

	override get least(): number {
		return this.#isLeaving || !this.#options.isReady() ? Infinity : super.least
	}

	/** The lender has one more thread. Throws `RangeError` if it has that one already, or too many. */
	opened(number: number): void {
		this.#add(number)
		this.#events.onSize()
	}

	/** A thread said something. */
	received(number: number, said: FromThread): void {
		this.#byNumber.get(number)?.receive(said)
	}

	/** A thread ended; the lender opens another one. */
	ended(number: number, reason: string): void {
		const thread = this.#byNumber.get(number)
		if (!thread) return
		this.#byNumber.delete(number)
		this.#events.onLost(reason)
		this.remove(thread, threadLost(`a thread of the gateway ${this.name} ended: ${reason}`))
		this.#events.onSize()
	}

	/** Messages are taken again. */
	ready(): void {
		this.#events.onFree()
	}

	/** No further runs; those that it has may end. */
	leave(): void {
		this.#isLeaving = true
		this.#events.onSize()
		this.#checkLeft()
	}

	end(reason: string): void {
		this.#options.end(reason)
	}

	/** The threads cannot be reached any more. */
	close(reason: string): void {
		const cause = this.#isLeaving ? DEPARTED : undefined
		this.#isLeaving = true
		const threads = [...this.#byNumber.values()]
		this.#byNumber.clear()
		this.#events.onClosed()
		for (const thread of threads)
			this.remove(thread, threadLost(`the gateway ${this.name} no longer lends its threads: ${reason}`, cause))
	}

	#add(number: number): void {
		if (this.#byNumber.has(number) || this.#byNumber.size >= MOST_AT_ONCE)
			throw new RangeError(`thread ${number} is one too many`)
		const thread: RunThread = new RunThread({
			post: (message) => this.#options.post(number, message),
			terminate: () => this.#options.terminate(number),
			close: () => [],
		})
		this.#byNumber.set(number, thread)
		this.add(thread)
	}

	#checkLeft(): void {
		if (this.#isLeaving && this.#byNumber.size > 0 && this.load === 0) this.end('it stops')
	}
}
