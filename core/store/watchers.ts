import { messageOf } from '../errors.ts'
import type { Logger } from '../log.ts'
import { isWithin } from './keys.ts'

/** Those who hear of changed keys, by the scope of what they watch. */
export interface Watchers<T> {
	/** `prefix` is joined. Answers with what ends it. */
	add(prefix: string, changed: (change: T) => void): () => void
	/** `make` is called for each who watches `key`. */
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

/** Runs what a caller gave us in the midst of our own work: its failure is not ours. */
export function guarded(callback: () => void, log?: Logger): void {
	try {
		callback()
	} catch (error) {
		log?.error({ err: error }, `somebody who follows the store threw: ${messageOf(error)}`)
	}
}

function scopeOf(joined: string): string {
	const end = joined.indexOf('\0')
	return end < 0 ? joined : joined.slice(0, end)
}
