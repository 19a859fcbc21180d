import type { Memory } from './contract.ts'

/** The same memories, each after the one that replaces it; otherwise in their order. */
export function newerFirst<T extends Pick<Memory, 'id' | 'replaces' | 'replaced_by'>>(memories: readonly T[]): T[] {
	const byId = new Map(memories.map((memory) => [memory.id, memory]))
	const successors = new Map<string, T>()
	for (const memory of memories) {
		const next = byId.get(memory.replaced_by ?? '')
		if (next) successors.set(memory.id, next)
		// A memory that a compaction made of the successor has its links.
		for (const id of memory.replaces ?? []) successors.set(id, memory)
	}
	const ordered: T[] = []
	const begun = new Set<string>()
	const place = (memory: T): void => {
		if (begun.has(memory.id)) return
		begun.add(memory.id)
		const next = successors.get(memory.id)
		if (next) place(next)
		ordered.push(memory)
	}
	for (const memory of memories) place(memory)
	return ordered
}
