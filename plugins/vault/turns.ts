import { Fault } from '../../core/errors.ts'

const WAITING_LIMIT = 1_000

export type InTurn = <T>(work: () => Promise<T>) => Promise<T>

/** Makes a queue in which one piece of work begins when the one before has ended. Throws `queue_full` where too many wait. */
export function openTurns(): InTurn {
	let last: Promise<unknown> = Promise.resolve()
	let waiting = 0
	return async (work) => {
		if (waiting >= WAITING_LIMIT)
			throw new Fault('queue_full', `${WAITING_LIMIT} changes of the vault wait already; try again later`, {
				headers: { 'retry-after': '1' },
			})
		waiting++
		const turn = last.then(work, work).finally(() => waiting--)
		last = turn.catch(() => {})
		return turn
	}
}
