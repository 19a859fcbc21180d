/**
 * All keys of one kind, in memory: about 250 bytes each. Answers whether a key exists, and which keys a prefix has, without asking
 * the cluster. It is exact because only the holder of the lease writes.
 */
import { compareKeys, endOf, keyAfter, scopeOf } from '../../../core/store/keys.ts'

/** The position of a key's message is not known yet. */
export const UNKNOWN = -1

interface Scope {
	seqs: Map<string, number>
	/** In order; absent until first needed. */
	sorted?: string[]
}

export class KeyIndex {
	readonly #scopes = new Map<string, Scope>()

	/** The position of the key's message, or `UNKNOWN`; undefined if there is no such key. */
	get(key: string): number | undefined {
		return this.#scopes.get(scopeOf(key))?.seqs.get(key)
	}

	set(key: string, seq: number): void {
		const name = scopeOf(key)
		const scope: Scope = this.#scopes.get(name) ?? { seqs: new Map() }
		this.#scopes.set(name, scope)
		if (scope.sorted && !scope.seqs.has(key)) scope.sorted.splice(placeOf(scope.sorted, key), 0, key)
		scope.seqs.set(key, seq)
	}

	delete(key: string): void {
		const name = scopeOf(key)
		const scope = this.#scopes.get(name)
		if (!scope?.seqs.delete(key)) return
		if (scope.sorted) scope.sorted.splice(placeOf(scope.sorted, key), 1)
		if (scope.seqs.size === 0) this.#scopes.delete(name)
	}

	/** At most `limit` keys within `prefix`, above `after` or, with `reverse`, below it and the highest first. */
	range(
		prefix: string,
		{ after, reverse, limit }: { after: string | undefined; reverse: boolean; limit: number },
	): string[] {
		const scope = this.#scopes.get(scopeOf(prefix))
		if (!scope) return []
		const sorted = (scope.sorted ??= [...scope.seqs.keys()].toSorted(compareKeys))
		let [from, to] = [placeOf(sorted, prefix), placeOf(sorted, endOf(prefix))]
		if (reverse) {
			if (after !== undefined) to = Math.min(to, placeOf(sorted, after))
			return sorted.slice(Math.max(from, to - limit), Math.max(from, to)).toReversed()
		}
		if (after !== undefined) from = Math.max(from, placeOf(sorted, keyAfter(after)))
		return sorted.slice(from, Math.min(to, from + limit))
	}

	scopes(): string[] {
		return [...this.#scopes.keys()]
	}
}

/** The index of the first key that is not below `key`. */
function placeOf(sorted: readonly string[], key: string): number {
	let [low, high] = [0, sorted.length]
	while (low < high) {
		const middle = (low + high) >>> 1
		if (compareKeys(sorted[middle] as string, key) < 0) low = middle + 1
		else high = middle
	}
	return low
}
