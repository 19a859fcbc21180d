import type { Memory } from './contract.ts'

/** The same memories, each after the one that replaces it; otherwise in their order. */
export function newerFirst<T extends Pick<Memory, 'id' | 'replaces' | 'replaced_by'>>(memories: readonly T[]): T[] {
	const byId = new Map(memories.map((memory) => [memory.id, memory]))
	const successors = new Map<string, T>()
	for (const memory of memories) {
		const next = byId.get(memory.replaced_by ?? '')
		if (next) successors.set(memory.id, next)
		// A memory that was merged from the successor has its links.
		for (const id of memory.replaces ?? []) successors.set(id, memory)
	}
	const ordered: T[] = []
	const placed = new Set<string>()
	for (const memory of memories) {
		const chain: T[] = []
		for (let one: T | undefined = memory; one && !placed.has(one.id); one = successors.get(one.id)) {
			placed.add(one.id)
			chain.push(one)
		}
		for (const one of chain.toReversed()) ordered.push(one)
	}
	return ordered
}
