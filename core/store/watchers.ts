import { messageOf } from '../errors.ts'
import type { Logger } from '../log/log.ts'
import { isWithin, scopeOf } from './keys.ts'
import type { Cursor, EventEnvelope, LogEntry } from './ports.ts'

/** Subscribers to key changes, by the scope that they watch. */
export interface Watchers<T> {
	/** `prefix` is joined. Returns a function that unsubscribes. */
	add(prefix: string, changed: (change: T) => void): () => void
	/** `make` is called for each watcher of `key`. */
	tell(key: string, make: () => T): void
}

export function openWatchers<T>(log?: Logger): Watchers<T> {
	const byScope = new Map<string, Set<{ prefix: string; changed: (change: T) => void }>>()
	return {
		add(prefix, changed) {
			const scope = scopeOf(prefix)
			const one = { prefix, changed }
			const watching = byScope.get(scope) ?? new Set()
			byScope.set(scope, watching.add(one))
			return () => {
				watching.delete(one)
				if (watching.size === 0 && byScope.get(scope) === watching) byScope.delete(scope)
			}
		},
		tell(key, make) {
			if (byScope.size === 0) return
			for (const { prefix, changed } of byScope.get(scopeOf(key)) ?? []) {
				if (isWithin(key, prefix)) guarded(() => changed(make()), log)
			}
		},
	}
}

type Heard = (cursor: Cursor, event: EventEnvelope) => void

/** Subscribers to the events of a log. */
export class LogListeners {
	readonly #all = new Set<Heard>()
	readonly #log: Logger | undefined

	constructor(log?: Logger) {
		this.#log = log
	}

	/** Returns a function that unsubscribes. A function that subscribes twice counts as two subscribers. */
	add(heard: Heard): () => void {
		const one: Heard = (cursor, event) => heard(cursor, event)
		this.#all.add(one)
		return () => this.#all.delete(one)
	}

	/** `first`: the position of the first entry. */
	tell(first: number, entries: readonly LogEntry[]): void {
		for (const [index, { event }] of entries.entries())
			for (const heard of this.#all) guarded(() => heard(String(first + index), event), this.#log)
	}
}

/** Calls a subscriber in the middle of the store's own work, which must not fail with it. */
function guarded(callback: () => void, log?: Logger): void {
	try {
		callback()
	} catch (error) {
		log?.error({ err: error }, `a subscriber of the store threw: ${messageOf(error)}`)
	}
}
