/** Counts the runs that wait for a place on a thread, by the caller that started them. */
import type { Actor } from '../../core/util/context.ts'
import { Counts } from '../../core/util/counts.ts'
import { isBackground } from './background.ts'

/** By pool, which outlives the instances of this plugin. */
const countsOf = new WeakMap<object, Counts>()

export function waitingByCaller(pool: object): Counts {
	let counts = countsOf.get(pool)
	if (!counts) countsOf.set(pool, (counts = new Counts()))
	return counts
}

/**
 * Identifies the caller of a run: a token, a user, the local caller or a channel. Runs that the agent itself, its webhooks or its
 * heartbeats started have the agent as caller, and so do those of an unknown caller.
 */
export function callerOf({ actor, trigger, agent_uid }: StartedRun): string {
	const isOfAgent = !actor || actor.kind === 'agent' || actor.kind === 'gateway' || isBackground(trigger)
	return isOfAgent ? `agent ${agent_uid}` : `${actor.kind} ${actor.id ?? ''}`
}

interface StartedRun {
	actor?: Actor | undefined
	trigger?: string
	agent_uid: string
}
