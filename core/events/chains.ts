/**
 * Chains of events: what a third-party plugin emits while it handles an event continues the chain of that event. A handler that
 * answers its own events would continue it without end, as fast as events are stored.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import { Fault } from '../errors.ts'
import type { EventEnvelope } from '../store/ports.ts'

interface Chain {
	/** Events since `since`. */
	count: number
	since: number
}

/** Of one chain in a minute, so that a slow one may go on. */
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
	throw new Fault(
		'plugin_invalid',
		`plugin "${plugin}" cannot emit "${type.slice(0, 128)}": ${EVENTS} events in a minute came of one, each emitted in a handler of ` +
			'another, so a handler answers its own events; name the types that it needs in place of "*", or return for those of the plugin',
	)
}

/** The event is of the chain in which this is called, if any. */
export function linkToChain(event: EventEnvelope): EventEnvelope {
	const chain = current.getStore()
	if (chain) chains.set(event, chain)
	return event
}
