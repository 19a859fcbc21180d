import { openSerialQueue } from '../../core/util/serial-queue.ts'
import type { SerialQueue } from '../../core/util/serial-queue.ts'

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
