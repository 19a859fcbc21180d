import { Fault } from '../../core/errors.ts'
import type { Context } from '../../core/plugin.ts'
import type { RunSettings } from './contract.ts'
import { keys } from './keys.ts'
import type { ConversationQueue } from './keys.ts'

type RoomDeps = Pick<Context<RunSettings>, 'store' | 'queue' | 'pool' | 'config'>

/**
 * Throws `queue_full` if another run may not wait behind `ahead` others of its conversation. Requests that arrive at the same
 * time may exceed the limits of an agent and of all agents by their number.
 */
export async function checkRoom({ store, queue, pool, config }: RoomDeps, uid: string, ahead: number): Promise<void> {
	if (ahead > config.max_waiting)
		throw full(`${ahead - 1} runs wait in this conversation already; wait for one to end, or stop the agent`)

	const unplaced = queue.waiting() + pool.places.waiting()
	if (ahead === 0 && unplaced >= config.max_waiting_total) {
		throw full(
			`${unplaced} runs of all agents wait for a thread already; try again later, or raise workers.runs_per_thread or runs.max_waiting_total`,
		)
	}
	// A run that need not wait is not counted: counting reads all conversations of the agent that have runs.
	let waiting = pool.places.waiting(uid)
	if (ahead === 0 && waiting === 0) return
	for await (const { value } of store.list<ConversationQueue>(keys.queues(uid)))
		waiting += Math.max(0, value.runs.length - 1)
	if (waiting >= config.max_waiting_per_agent) {
		throw full(
			`${waiting} runs of this agent wait already; wait for one to end, stop the agent, or raise runs.max_waiting_per_agent`,
		)
	}
}

function full(message: string): Fault {
	return new Fault('queue_full', message, { headers: { 'retry-after': '5' } })
}
