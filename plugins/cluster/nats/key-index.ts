/**
 * All keys of one kind, in memory: about 250 bytes each. So whether a key exists, and which keys a prefix has, is known without
 * asking the cluster, and exact because only the holder of the lease writes.
 */
import { compareKeys, isWithin, scopeOf } from '../../../core/store/keys.ts'

/** The position of a key's message is not known yet. */
export const UNKNOWN = -1

export interface KeyIndex {
	/** The position of the key's message, or `UNKNOWN`; undefined if there is no such key. */
	get(key: string): number | undefined
	set(key: string, seq: number): void
	delete(key: string): void
	/** At most `limit` keys within `prefix`, above `after` or, with `reverse`, below it. */
	range(prefix: string, options: { after: string | undefined; reverse: boolean; limit: number }): string[]
	scopes(): string[]
}

interface Scope {
	seqs: Map<string, number>
	/** In order; absent until somebody asks. */
	sorted?: string[]
}

export function openKeyIndex(): KeyIndex {
	const scopes = new Map<string, Scope>()
	return {
		get: (key) => scopes.get(scopeOf(key))?.seqs.get(key),
		set(key, seq) {
			const name = scopeOf(key)
			const scope: Scope = scopes.get(name) ?? { seqs: new Map() }
			scopes.set(name, scope)
			if (scope.sorted && !scope.seqs.has(key)) scope.sorted.splice(placeOf(scope.sorted, key), 0, key)
			scope.seqs.set(key, seq)
		},
		delete(key) {
			const name = scopeOf(key)
			const scope = scopes.get(name)
			if (!scope?.seqs.delete(key)) return
			if (scope.sorted) scope.sorted.splice(placeOf(scope.sorted, key), 1)
			if (scope.seqs.size === 0) scopes.delete(name)
		},
		range(prefix, { after, reverse, limit }) {
			const scope = scopes.get(scopeOf(prefix))
			if (!scope) return []
			const sorted = (scope.sorted ??= [...scope.seqs.keys()].toSorted(compareKeys))
			const found: string[] = []
			if (reverse) {
				// Behind everything within the prefix: the parts of a key are separated by NUL.
				const end = placeOf(sorted, `${prefix}\u0001`)
				for (let at = after === undefined ? end : Math.min(end, placeOf(sorted, after)); at > 0; at--) {
					const key = sorted[at - 1] as string
					if (found.length === limit || compareKeys(key, prefix) < 0) break
					if (isWithin(key, prefix)) found.push(key)
				}
				return found
			}
			const start = placeOf(sorted, prefix)
			for (let at = after === undefined ? start : Math.max(start, placeOf(sorted, after)); at < sorted.length; at++) {
				const key = sorted[at] as string
				if (found.length === limit || !isWithin(key, prefix)) break
				if (key !== after) found.push(key)
			}
			return found
		},
		scopes: () => [...scopes.keys()],
	}
}

/** Where the key stands, or would stand. */
function placeOf(sorted: readonly string[], key: string): number {
	let [low, high] = [0, sorted.length]
	while (low < high) {
		const middle = (low + high) >>> 1
		if (compareKeys(sorted[middle] as string, key) < 0) low = middle + 1
		else high = middle
	}
	return low
}
