/** Stores facts from a conversation before the turns that contain them leave the model's context window. */
import { hash } from 'node:crypto'
import type { AgentRef } from '../../core/plugin.ts'
import type { LongTermMemory } from './contract.ts'

/** Marks memories that were stored without a request. */
const TAG = 'from-conversation'
/** Search results that are compared with a fact. */
const COMPARED = 3

/** Returns the ids of new memories. A fact that is already in memory is not stored again. */
export async function keepFacts(
	memories: Pick<LongTermMemory, 'search' | 'store'>,
	agent: AgentRef,
	facts: readonly string[],
): Promise<string[]> {
	const { wordsOf } = await import('./words.ts') // loads all the languages, which an idle gateway does not need
	const ids: string[] = []
	for (const fact of facts) {
		const normalized = wordsOf(fact).join(' ')
		const known = await memories.search(agent, fact, COMPARED)
		if (known.some(({ content }) => wordsOf(content).join(' ') === normalized)) continue
		const key = `fact:${hash('sha256', normalized)}`
		// The fact may be older than stored memories, so it replaces none.
		ids.push((await memories.store(agent, { content: fact, tags: [TAG], replaces: [], key })).id)
	}
	return ids
}
