/** Does pieces of work one after another, in the order in which they came. */
export interface SerialQueue {
	/**
	 * Settles as `work` does. A failure does not hold up what comes next. Throws what `full` returns if too many tasks are
	 * waiting.
	 */
	run<T>(work: () => T | Promise<T>): Promise<T>
	/** Pieces of work that wait or are running. */
	readonly length: number
	/** Settles once all that was given so far has settled. */
	idle(): Promise<void>
}

/** `limit`: pieces of work that may wait or run; `full`: the error for the next one. */
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
		get length() {
			return length
		},
		idle: async () => void (await last),
	}
}
