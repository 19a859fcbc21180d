import { openSerialQueue } from '../../core/util/serial-queue.ts'
import type { SerialQueue } from '../../core/util/serial-queue.ts'

/** A serial queue for each name. An idle queue uses no memory. */
export class SerialQueues {
	readonly #queues = new Map<string, SerialQueue>()

	async run<T>(name: string, work: () => T | Promise<T>): Promise<T> {
		const queue = this.#queues.get(name) ?? openSerialQueue()
		this.#queues.set(name, queue)
		try {
			return await queue.run(work)
		} finally {
			if (queue.length() === 0 && this.#queues.get(name) === queue) this.#queues.delete(name)
		}
	}

	/** The number of queued and running tasks of that name. */
	length(name: string): number {
		return this.#queues.get(name)?.length() ?? 0
	}

	/** Settles once all current tasks have settled. */
	async idle(): Promise<void> {
		await Promise.all(Array.from(this.#queues.values(), (queue) => queue.idle()))
	}
}
