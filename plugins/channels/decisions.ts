import { Fault, isFault } from '../../core/errors.ts'
import type { Op, Store } from '../../core/store/ports.ts'
import { openLane } from './lane.ts'
import type { Lane } from './lane.ts'

/**
 * Writes what `decision` comes to as one commit in a scope; it reads, and gives its ops expectations. It is asked again where
 * somebody else was faster. No ops: nothing is written.
 */
export type Decide = <T>(scope: string, decision: () => Promise<{ ops: Op[]; result: T }>) => Promise<T>

/** Conflicts come from other processes only: those of this one take turns. */
const ATTEMPTS = 20
const WAITING_LIMIT = 1_000

export function decisionsIn(store: Store): Decide {
	const lanes = new Map<string, { lane: Lane; users: number }>()
	const inTurn = async <T>(scope: string, work: () => Promise<T>): Promise<T> => {
		const entry = lanes.get(scope) ?? { lane: openLane(WAITING_LIMIT, tooMany), users: 0 }
		lanes.set(scope, entry)
		entry.users++
		try {
			return await entry.lane(work)
		} finally {
			if (--entry.users === 0) lanes.delete(scope)
		}
	}
	return (scope, decision) =>
		inTurn(scope, async () => {
			for (let attempt = 1; ; attempt++) {
				const { ops, result } = await decision()
				if (ops.length === 0) return result
				try {
					await store.commit(scope, ops)
					return result
				} catch (error) {
					if (!isFault(error, 'conflict') || attempt === ATTEMPTS) throw error
				}
			}
		})
}

function tooMany(): Fault {
	return new Fault('queue_full', `${WAITING_LIMIT} changes of this channel wait already; try again later`, {
		headers: { 'retry-after': '1' },
	})
}
