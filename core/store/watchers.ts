import { messageOf } from '../errors.ts'
import type { Logger } from '../log/log.ts'
import { isWithin } from './keys.ts'

/** Subscribers to key changes. There are few of them, so that each change is compared with all. */
export interface Watchers<T> {
	/** `prefix` is joined. Returns a function that unsubscribes. */
	add(prefix: string, changed: (change: T) => void): () => void
	/** `make` is called for each watcher of `key`. */
	tell(key: string, make: () => T): void
}

export function openWatchers<T>(log?: Logger): Watchers<T> {
	const watching = new Set<{ prefix: string; changed: (change: T) => void }>()
	return {
		add(prefix, changed) {
			const one = { prefix, changed }
			watching.add(one)
			return () => watching.delete(one)
		},
		tell(key, make) {
			for (const { prefix, changed } of watching) if (isWithin(key, prefix)) guarded(() => changed(make()), log)
		},
	}
}

/** Calls a subscriber in the middle of the store's own work, which must not fail with it. */
export function guarded(callback: () => void, log?: Logger): void {
	try {
		callback()
	} catch (error) {
		log?.error({ err: error }, `a subscriber of the store threw: ${messageOf(error)}`)
	}
}
