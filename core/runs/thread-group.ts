/** Threads over which runs are spread evenly: those of this process, or those that another gateway lends. */
import type { AssignedRun, RunThread, Assignment } from './run-thread.ts'

export class ThreadGroup {
	readonly #threads = new Set<RunThread>()
	readonly #places: number
	readonly #onFree: () => void

	/** `places`: of each thread. `onFree` is called when one may be free again. */
	constructor(places: number, onFree: () => void) {
		this.#places = places
		this.#onFree = onFree
	}

	/** Runs on all of its threads. */
	get load(): number {
		let load = 0
		for (const thread of this.#threads) load += thread.load
		return load
	}

	/** Runs on the thread that has the fewest; Infinity if none has a free place. */
	get least(): number {
		let least = Infinity
		for (const { load, isEnding } of this.#threads) if (load < this.#places && !isEnding) least = Math.min(least, load)
		return least
	}

	/** Assigns the run to the thread that has the fewest runs. */
	assign(run: AssignedRun): Assignment {
		const { least } = this
		const thread = [...this.#threads].find(({ load, isEnding }) => load === least && !isEnding)
		if (!thread) throw new TypeError('no thread has a free place')
		const assignment = thread.assign(run)
		return {
			...assignment,
			release: () => {
				assignment.release()
				this.#onFree()
			},
		}
	}

	protected add(thread: RunThread): void {
		this.#threads.add(thread)
	}

	/** The thread has ended, and its runs end with `cause`. */
	protected remove(thread: RunThread, cause: unknown): void {
		this.#threads.delete(thread)
		thread.close(cause)
		this.#onFree()
	}
}

/** Threads outside this process. */
export interface RemoteGroup extends ThreadGroup {
	/** The gateway that lends them, for people. */
	readonly name: string
	/** The number of threads that accept runs. */
	readonly threads: number
	/** Runs that they execute at the same time, without the reserve. */
	readonly capacity: number
	/** Returns the threads to their gateway; `onClosed` must follow. */
	end(reason: string): void
}

/** Callbacks of the pool for changes of such a group. */
export interface RemoteGroupEvents {
	/** A place for a run may be free. */
	onFree(): void
	/** The number of places has changed. */
	onSize(): void
	/** A thread ended by itself. */
	onLost(reason: string): void
	/** The threads are no longer reachable. */
	onClosed(): void
}
