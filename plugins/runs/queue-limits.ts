import type { Fault } from '../../core/errors.ts'
import type { Context } from '../../core/plugin.ts'
import { BoundedMap } from '../../core/util/bounded-map.ts'
import { causeNow } from '../../core/util/context.ts'
import { tryLater } from '../shared/try-later.ts'
import { isBackground } from './background.ts'
import type { RunSettings, StartRequest } from './contract.ts'
import { keys } from './keys.ts'
import type { ConversationQueue } from './keys.ts'
import { callerOf, waitingByCaller } from './waiting-by-caller.ts'

export interface QueueLimitsDeps extends Pick<Context<RunSettings>, 'store'> {
	queue: Pick<Context['queue'], 'waiting'>
	pool: { places: { waiting(owner: string): number } }
	config: Pick<RunSettings, 'max_waiting' | 'max_waiting_per_agent' | 'max_waiting_total'>
}

/**
 * Called before each run of the agent `uid` is started. `ahead`: runs of its conversation that it must wait for. Throws
 * `queue_full` if too many runs wait already in the conversation, of the agent, of the caller or of all agents. A run with a
 * parent is never refused. Concurrent requests may exceed all but the first of these limits by their number.
 */
export type QueueLimits = (
	uid: string,
	ahead: number,
	request: Pick<StartRequest, 'trigger' | 'parent'>,
) => Promise<void>

/** The share of the limits of an agent and of all agents for runs in the background: deliveries must not shut out people. */
const BACKGROUND_SHARE = 3 / 4

/** Agents whose count is cached. */
const CACHED_AGENTS = 1_024

export function openQueueLimits(deps: QueueLimitsDeps): QueueLimits {
	/** Upper bound of the runs that wait behind others, by agent: the last count and all runs queued since. Ended runs only lower it. */
	const maxQueued = new BoundedMap<string, number>(CACHED_AGENTS)
	return async (uid, ahead, { trigger, parent }) => {
		const before = maxQueued.get(uid)
		const added = ahead > 0 ? 1 : 0
		if (before !== undefined && added > 0) maxQueued.set(uid, before + added)
		if (parent !== undefined) return
		checkOthers(deps, uid, ahead, trigger)
		const { store, pool, config } = deps
		const waitingForPlace = pool.places.waiting(uid)
		// Counting reads all queues of the agent. So do not count if this run need not wait, or the limit cannot be reached.
		if (ahead === 0 && waitingForPlace === 0) return
		const limit = Math.ceil(config.max_waiting_per_agent * shareOf(trigger))
		if (before !== undefined && waitingForPlace + before < limit) return
		let queued = 0
		for await (const { value } of store.list<ConversationQueue>(keys.queues(uid)))
			queued += Math.max(0, value.runs.length - 1)
		maxQueued.set(uid, queued + added)
		const waiting = waitingForPlace + queued
		if (waiting < limit) return
		throw full(
			`${waiting} runs of this agent wait already; wait for one to end, stop the agent, or raise runs.max_waiting_per_agent`,
		)
	}
}

/** Checks the limits of a conversation, of the caller and of all agents. */
function checkOthers(deps: QueueLimitsDeps, uid: string, ahead: number, trigger: string): void {
	const { queue, config } = deps
	if (ahead > config.max_waiting)
		throw full(`${ahead - 1} runs wait in this conversation already; wait for one to end, or stop the agent`)
	if (ahead > 0) return

	const waiting = waitingByCaller(deps)
	const unplaced = queue.waiting() + waiting.total
	const left = Math.ceil(config.max_waiting_total * shareOf(trigger)) - unplaced
	const remedy = 'try again later, or raise workers.runs_per_thread or runs.max_waiting_total'
	if (left <= 0) throw full(`${unplaced} runs of all agents wait for a thread already; ${remedy}`)
	// A caller may have as many as are left: alone half of the limit, and others always find places.
	if (unplaced < left) return
	const own = waiting.of(callerOf({ actor: causeNow()?.actor, trigger, agent_uid: uid }))
	if (own < left) return
	throw full(
		`${own} runs of this caller wait for a thread already, and the last ${left} places are for others; ${remedy}`,
	)
}

/** Of the limits of an agent and of all agents. */
function shareOf(trigger: string): number {
	return isBackground(trigger) ? BACKGROUND_SHARE : 1
}

function full(message: string): Fault {
	return tryLater('queue_full', message, 5)
}
