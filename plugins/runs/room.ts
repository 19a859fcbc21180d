import type { Fault } from '../../core/errors.ts'
import type { Context } from '../../core/plugin.ts'
import { BoundedMap } from '../../core/util/bounded-map.ts'
import { tryLater } from '../shared/try-later.ts'
import type { RunSettings } from './contract.ts'
import { keys } from './keys.ts'
import type { ConversationQueue } from './keys.ts'

export interface RoomDeps extends Pick<Context<RunSettings>, 'store'> {
	queue: Pick<Context['queue'], 'waiting'>
	pool: { places: { waiting(owner?: string): number } }
	config: Pick<RunSettings, 'max_waiting' | 'max_waiting_per_agent' | 'max_waiting_total'>
}

/**
 * Called before each run of the agent `uid` is started. Throws `queue_full` if another run may not wait behind `ahead` others of
 * its conversation, unless the run `isExempt` from these limits. Requests that arrive at the same time may exceed the limits of an agent and of all
 * agents by their number.
 */
export type Room = (uid: string, ahead: number, isExempt: boolean) => Promise<void>

/** Agents of which a count is remembered. */
const REMEMBERED = 1_024

export function openRoom(deps: RoomDeps): Room {
	/** The most runs that wait behind others, by agent: those counted last and all that came since. Ends only make room. */
	const most = new BoundedMap<string, number>(REMEMBERED)
	return async (uid, ahead, isExempt) => {
		const before = most.get(uid)
		const more = ahead > 0 ? 1 : 0
		if (before !== undefined && more > 0) most.set(uid, before + more)
		if (isExempt) return
		checkOthers(deps, ahead)
		const { store, pool, config } = deps
		const placeless = pool.places.waiting(uid)
		// A run that need not wait is not counted, and none while the limit is out of reach: counting reads all conversations of
		// the agent that have runs.
		if (ahead === 0 && placeless === 0) return
		const limit = config.max_waiting_per_agent
		if (before !== undefined && placeless + before < limit) return
		let behind = 0
		for await (const { value } of store.list<ConversationQueue>(keys.queues(uid)))
			behind += Math.max(0, value.runs.length - 1)
		most.set(uid, behind + more)
		const waiting = placeless + behind
		if (waiting < limit) return
		throw full(
			`${waiting} runs of this agent wait already; wait for one to end, stop the agent, or raise runs.max_waiting_per_agent`,
		)
	}
}

/** The limits of a conversation and of all agents. */
function checkOthers({ queue, pool, config }: RoomDeps, ahead: number): void {
	if (ahead > config.max_waiting)
		throw full(`${ahead - 1} runs wait in this conversation already; wait for one to end, or stop the agent`)

	const unplaced = queue.waiting() + pool.places.waiting()
	if (ahead === 0 && unplaced >= config.max_waiting_total) {
		throw full(
			`${unplaced} runs of all agents wait for a thread already; try again later, or raise workers.runs_per_thread or runs.max_waiting_total`,
		)
	}
}

function full(message: string): Fault {
	return tryLater('queue_full', message, 5)
}
