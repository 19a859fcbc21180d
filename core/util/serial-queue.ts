/** Does pieces of work one after another, in the order in which they came. */
export interface SerialQueue {
	/** Settles as `work` does. A failure does not hold up what comes next. Throws what `full` makes where too much waits. */
	run<T>(work: () => T | Promise<T>): Promise<T>
	/** Pieces of work that wait or are running. */
	readonly length: number
	/** Settles once all that was given so far has settled. */
	idle(): Promise<void>
}

/** `limit`: pieces of work that may wait or run; `full`: the error for the next one. */
export function openSerialQueue(limit = Infinity, full = (): Error => new Error('too much waits')): SerialQueue {
	let last: Promise<unknown> = Promise.resolve()
	let length = 0
	return {
		async run(work) {
			if (length >= limit) throw full()
			length++
			const turn = last.then(work).finally(() => length--)
			last = turn.catch(() => {})
			return turn
		},
		get length() {
			return length
		},
		idle: async () => void (await last),
	}
}

/** A serial queue for each name; one without work takes no memory. */
export class SerialQueues {
	readonly #queues = new Map<string, SerialQueue>()

	async run<T>(name: string, work: () => T | Promise<T>): Promise<T> {
		const queue = this.#queues.get(name) ?? openSerialQueue()
		this.#queues.set(name, queue)
		try {
			return await queue.run(work)
		} finally {
			if (queue.length === 0 && this.#queues.get(name) === queue) this.#queues.delete(name)
		}
	}

	/** Pieces of work of that name that wait or are running. */
	length(name: string): number {
		return this.#queues.get(name)?.length ?? 0
	}

	/** Settles once all that was given so far has settled. */
	async idle(): Promise<void> {
		await Promise.all(Array.from(this.#queues.values(), (queue) => queue.idle()))
	}
}
