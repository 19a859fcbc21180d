/** Stores facts of a conversation before the turns that hold them leave their model's window. */
import { hash } from 'node:crypto'
import type { AgentRef } from '../../core/plugin.ts'
import type { LongTermMemory } from './contract.ts'

/** The tag of such memories: nobody asked for them to be stored. */
const TAG = 'from-conversation'
/** Memories among which the same fact is looked for. */
const LOOKED_AT = 3

/** Returns the ids of new memories. A fact that the agent remembers already is not stored again. */
export async function keepFacts(
	memories: Pick<LongTermMemory, 'search' | 'store'>,
	agent: AgentRef,
	facts: readonly string[],
): Promise<string[]> {
	const { wordsOf } = await import('./words.ts') // loads all the languages, which an idle gateway does not need
	const ids: string[] = []
	for (const fact of facts) {
		const normalized = wordsOf(fact).join(' ')
		const known = await memories.search(agent, fact, LOOKED_AT)
		if (known.some(({ content }) => wordsOf(content).join(' ') === normalized)) continue
		const key = `fact:${hash('sha256', normalized)}`
		// It was said before newer memories were stored, so it replaces none.
		ids.push((await memories.store(agent, { content: fact, tags: [TAG], replaces: [], key })).id)
	}
	return ids
}
