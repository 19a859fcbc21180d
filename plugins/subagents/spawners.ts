/** Remembers which agents may have sub-agents, so that the end of another agent's run needs no reads of the store. */

/** From this number of agents on, every agent may have sub-agents. */
const LIMIT = 10_000

/**
 * Names. Not part of a plugin instance: calls of one instance may still start sub-agents after the next instance has read those
 * that exist.
 */
const spawners = new Set<string>()

/** Must be called before the record of a sub-agent is written. */
export function addSpawner(agent: string): void {
	if (spawners.size < LIMIT) spawners.add(agent)
}

export function mayHaveSubagents(agent: string): boolean {
	return spawners.size === LIMIT || spawners.has(agent)
}
