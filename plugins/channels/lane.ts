import type { Fault } from '../../core/errors.ts'

export type Lane = <T>(work: () => Promise<T>) => Promise<T>

/** Makes a queue in which one piece of work begins when the one before has ended. Where `limit` wait or run, `full` is thrown. */
export function openLane(limit: number, full: () => Fault): Lane {
	let last: Promise<unknown> = Promise.resolve()
	let waiting = 0
	return async (work) => {
		if (waiting >= limit) throw full()
		waiting++
		const turn = last.then(work).finally(() => waiting--)
		last = turn.catch(() => {})
		return turn
	}
}
