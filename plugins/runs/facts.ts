/** Puts facts of a conversation into long-term memory before the turns that hold them leave the window. */
import { createHash } from 'node:crypto'
import { messageOf } from '../../core/errors.ts'
import type { AgentRef, Context } from '../../core/plugin.ts'
import type {} from '../memory/contract.ts'

/** The tag of such memories: nobody asked for them to be stored. */
export const FACT_TAG = 'from-conversation'
/** Memories among which the same fact is looked for. */
const LOOKED_AT = 3

/** Returns the ids of new memories. A fact that the agent remembers already is not stored again. Never throws. */
export async function keepFacts(
	{ find, log }: Pick<Context, 'find' | 'log'>,
	agent: AgentRef,
	facts: readonly string[],
): Promise<string[]> {
	const memory = find('memory')
	if (!memory) return []
	const ids: string[] = []
	try {
		for (const fact of facts) {
			const said = wordsIn(fact)
			const known = await memory.search(agent, fact, LOOKED_AT)
			if (known.some(({ content }) => wordsIn(content) === said)) continue
			const key = `fact:${createHash('sha256').update(said).digest('hex')}`
			ids.push((await memory.store(agent, { content: fact, tags: [FACT_TAG], key })).id)
		}
	} catch (error) {
		log.warn({ agent: agent.name }, `facts of a conversation were not stored: ${messageOf(error)}`)
	}
	return ids
}

function wordsIn(text: string): string {
	return (text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []).join(' ')
}
