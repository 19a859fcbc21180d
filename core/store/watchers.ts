import { messageOf } from '../errors.ts'
import type { Logger } from '../log/log.ts'
import { isWithin, scopeOf } from './keys.ts'
import type { EventLog, LogEntry } from './ports.ts'

/** Subscribers to key changes, by the scope that they watch. An error that one throws is logged. */
export function openWatchers<T>(log?: Logger) {
	const byScope = new Map<string, Set<{ prefix: string; changed: (change: T) => void }>>()
	return {
		/** `prefix` is joined. Returns a function that unsubscribes. */
		add(prefix: string, changed: (change: T) => void): () => void {
			const scope = scopeOf(prefix)
			const watcher = { prefix, changed }
			const watchers = byScope.get(scope) ?? new Set()
			byScope.set(scope, watchers.add(watcher))
			return () => {
				watchers.delete(watcher)
				if (watchers.size === 0 && byScope.get(scope) === watchers) byScope.delete(scope)
			}
		},
		/** `make` is called for each watcher of `key`. */
		tell(key: string, make: () => T): void {
			if (byScope.size === 0) return
			for (const { prefix, changed } of byScope.get(scopeOf(key)) ?? []) {
				if (isWithin(key, prefix)) guarded(() => changed(make()), log)
			}
		},
	}
}

type Listener = Parameters<EventLog['subscribe']>[0]

/** Subscribers to the events of a log. */
export function openLogListeners(log?: Logger) {
	const all = new Set<{ listener: Listener }>()
	return {
		/** Returns a function that unsubscribes. A function that is added twice counts as two subscribers. */
		add(listener: Listener): () => void {
			const subscriber = { listener }
			all.add(subscriber)
			return () => all.delete(subscriber)
		},
		/** `first`: the position of the first entry. */
		tell(first: number, entries: readonly LogEntry[]): void {
			for (const [index, { event }] of entries.entries())
				for (const { listener } of all) guarded(() => listener(String(first + index), event), log)
		},
	}
}

/** Calls a subscriber during the store's own work, which must not fail if the subscriber throws. */
function guarded(callback: () => void, log?: Logger): void {
	try {
		callback()
	} catch (error) {
		log?.error({ err: error }, `a subscriber of the store threw: ${messageOf(error)}`)
	}
}
