/** Runs tasks one after another, in order. */
export interface SerialQueue {
	/**
	 * Settles as `work` does. A failure does not affect later tasks. Throws the error from `full` if too many tasks are waiting.
	 */
	run<T>(work: () => T | Promise<T>): Promise<T>
	/** Tasks that wait or are running. */
	length(): number
	/** Settles once all tasks so far have settled. */
	idle(): Promise<void>
}

/** `limit`: tasks that may wait or run. `full`: makes the error for the next one. */
export function openSerialQueue(
	limit = Infinity,
	full = (): Error => new Error('too many tasks are waiting'),
): SerialQueue {
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
		length: () => length,
		idle: async () => void (await last),
	}
}
