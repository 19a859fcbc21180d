/** Counts the runs that wait for a place on a thread, by the caller that started them. */
import type { Actor } from '../../core/util/context.ts'
import { Counts } from '../../core/util/counts.ts'
import { isBackground } from './background.ts'
import type { RunSettings } from './contract.ts'

class WaitingByCaller {
	readonly #runs = new Counts()
	readonly #most: number
	#total = 0

	/** `most`: runs of one caller that count toward the total. */
	constructor(most: number) {
		this.#most = most
	}

	/** Of all callers. Sub-agents are never refused, so one caller can have any number, which must not keep out others. */
	get total(): number {
		return this.#total
	}

	of(caller: string): number {
		return this.#runs.of(caller)
	}

	add(caller: string): void {
		if (this.of(caller) < this.#most) this.#total++
		this.#runs.add(caller)
	}

	/** To be called once for each `add`. */
	remove(caller: string): void {
		this.#runs.add(caller, -1)
		if (this.of(caller) < this.#most) this.#total--
	}
}

const countsOf = new WeakMap<object, WaitingByCaller>()

/** The counts of an instance of this plugin, by its context. */
export function waitingByCaller(ctx: { config: Pick<RunSettings, 'max_waiting_total'> }): WaitingByCaller {
	const counts = countsOf.get(ctx) ?? new WaitingByCaller(Math.ceil(ctx.config.max_waiting_total / 2))
	countsOf.set(ctx, counts)
	return counts
}

/**
 * Identifies the caller of a run: a token, a user, the local caller or a channel. Sub-agents have the caller of the run that
 * started them. Runs that the agent itself, its webhooks or its heartbeats started have the agent as caller, and so do those of
 * an unknown caller.
 */
export function callerOf({ caller, actor, trigger, agent_uid }: StartedRun): string {
	if (caller !== undefined) return caller
	const isOfAgent = !actor || actor.kind === 'agent' || actor.kind === 'gateway' || isBackground(trigger)
	return isOfAgent ? `agent ${agent_uid}` : `${actor.kind} ${actor.id ?? ''}`
}

interface StartedRun {
	caller?: string
	actor?: Actor | undefined
	trigger?: string
	agent_uid: string
}
