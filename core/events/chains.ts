/**
 * Chains of events: what a third-party plugin emits while it handles an event continues the chain of that event. A handler that
 * emits an event for each of its own events would never stop, and emit as fast as events are stored.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import { pluginInvalid } from '../errors.ts'
import type { EventEnvelope } from '../store/ports.ts'

interface Chain {
	/** Events since `since`, a time of `performance.now()`. */
	count: number
	since: number
}

/** The limit of one chain in a minute. A slow chain, such as one with a timer, may continue forever. */
const EVENTS = 1_000
const WINDOW_MS = 60_000

const current = new AsyncLocalStorage<Chain>()
const chains = new WeakMap<EventEnvelope, Chain>()

/** Calls a handler: what it emits, and what it starts to emit later, continues the chain of the event. */
export function inChainOf<T>(event: EventEnvelope, handle: () => T): T {
	return current.run(chains.get(event) ?? { count: 0, since: performance.now() }, handle)
}

/** Counts an event that is about to be emitted. Throws `plugin_invalid` once its chain is too long. */
export function continueChain(type: string, plugin: string): void {
	const chain = current.getStore()
	if (!chain) return
	const now = performance.now()
	if (now - chain.since > WINDOW_MS) Object.assign(chain, { count: 0, since: now })
	if (++chain.count <= EVENTS) return
	throw pluginInvalid(
		`plugin "${plugin}" cannot emit "${type.slice(0, 128)}": one event led to ${EVENTS} more within a minute, so its ` +
			'handlers react to their own events: subscribe to specific types in place of "*", or ignore the events of this plugin',
	)
}

/** Adds the event to the chain of the event that is being handled, if any. */
export function linkToChain(event: EventEnvelope): EventEnvelope {
	const chain = current.getStore()
	if (chain) chains.set(event, chain)
	return event
}
