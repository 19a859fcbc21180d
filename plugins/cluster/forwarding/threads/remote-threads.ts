/** The borrower's view of the threads that one gateway lends, and of their runs. */
import { RunThread } from '../../../../core/runs/run-thread.ts'
import { ThreadGroup } from '../../../../core/runs/thread-group.ts'
import type { RemoteGroup, RemoteGroupEvents } from '../../../../core/runs/thread-group.ts'
import { DEPARTED, threadLost } from '../../../../core/runs/worker-threads.ts'
import type { ThreadLink } from './link.ts'
import type { FromBorrower, FromLender, Hello } from './protocol.ts'

export interface RemoteThreadsOptions extends Hello {
	/** Call `close` once it has ended. */
	link: ThreadLink<FromBorrower>
}

/** Limit of threads of one lender: more than it may have, since a lost thread is replaced before it is gone. */
const MAX_AT_ONCE = 128

export class RemoteThreads extends ThreadGroup implements RemoteGroup {
	readonly name: string
	readonly #options: RemoteThreadsOptions
	readonly #events: RemoteGroupEvents
	readonly #byNumber = new Map<number, RunThread>()
	#isLeaving = false

	/** `places`: of each thread, `runs_per_thread` and a share of the reserve. */
	constructor(options: RemoteThreadsOptions, places: number, events: RemoteGroupEvents) {
		super(places, () => {
			events.onFree()
			this.#endIfIdle()
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
		// While the link is busy, further runs go elsewhere.
		return this.#isLeaving || this.#options.link.isBusy ? Infinity : super.least
	}

	/** Throws for a message that violates the protocol. */
	receive(message: FromLender): void {
		switch (message.kind) {
			case 'said':
				return this.#byNumber.get(message.thread)?.receive(message.said)
			case 'opened':
				this.#add(message.thread)
				return this.#events.onSize()
			case 'ended':
				return this.#ended(message.thread, message.reason)
			case 'leaving':
				this.#isLeaving = true
				this.#events.onSize()
				return this.#endIfIdle()
			case 'hello':
				throw new TypeError('it sent a second hello')
		}
	}

	#ended(number: number, reason: string): void {
		const thread = this.#byNumber.get(number)
		if (!thread) return
		this.#byNumber.delete(number)
		this.#events.onLost(reason)
		this.remove(thread, threadLost(`a thread of the gateway ${this.name} ended: ${reason}`))
		this.#events.onSize()
	}

	/** The link is no longer busy. */
	ready(): void {
		this.#events.onFree()
	}

	end(reason: string): void {
		this.#options.link.end(reason)
	}

	/** Call this once the link has ended. */
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
		if (this.#byNumber.has(number) || this.#byNumber.size >= MAX_AT_ONCE)
			throw new RangeError(`thread ${number} exists already, or is one too many`)
		const thread: RunThread = new RunThread({
			post: (message) => this.#options.link.send({ kind: 'post', thread: number, message }),
			terminate: () => this.#options.link.send({ kind: 'terminate', thread: number }),
			close: () => [],
		})
		this.#byNumber.set(number, thread)
		this.add(thread)
	}

	#endIfIdle(): void {
		if (this.#isLeaving && this.#byNumber.size > 0 && this.load === 0) this.end('it stops')
	}
}
