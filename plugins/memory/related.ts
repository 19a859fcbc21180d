/** Recall without being asked: the memories that belong to a prompt, found in bounded time. */
import { setTimeout as sleep } from 'node:timers/promises'
import { messageOf } from '../../core/errors.ts'
import type { AgentRef, Context } from '../../core/plugin.ts'
import { BoundedMap } from '../../core/util/bounded-map.ts'
import { Late, within } from '../../core/util/deadline.ts'
import type {} from '../agents/contract.ts'
import type { LongTermMemory, Memory, MemorySettings } from './contract.ts'
import type { Embedder } from './embedders.ts'
import type { Embeddings } from './embeddings.ts'
import type { MemoryIndex } from './memory-index.ts'
import { newerFirst } from './newer-first.ts'
import { hasMemories, memoriesAt, shown } from './records.ts'

/** What a run may wait for. */
const EMBEDDING_MS = 500
const ALL_MS = 1_000
/** For this long no run waits for an embedder that was late. */
const REST_MS = 60_000
const EMBEDDERS = 1_000
/** Of a longer prompt the beginning and the end, where people say what they want. */
const PROMPT_CHARACTERS = 4_000

export function relatedOf(
	ctx: Context<MemorySettings>,
	{ index, embeddings }: { index: MemoryIndex; embeddings: Embeddings },
): LongTermMemory['related'] {
	const { store, config, redactor, log } = ctx
	const { limit, threshold } = config.recall
	/** Until when (`performance.now()`) embedders that were late are not waited for, by their id. */
	const resting = new BoundedMap<string, number>(EMBEDDERS)

	const vectorOf = async (embedder: Embedder, text: string): Promise<Float32Array | undefined> => {
		const asked = embeddings.ofQuestion(embedder, text)
		const patience = (resting.get(embedder.id) ?? 0) > performance.now() ? 0 : EMBEDDING_MS
		const vector = await Promise.race([asked, sleep(patience, 'late' as const, { ref: false })])
		if (vector !== 'late') return vector
		if (patience > 0) resting.set(embedder.id, performance.now() + REST_MS)
		return undefined
	}

	const find = async (agent: AgentRef, prompt: string): Promise<Memory[]> => {
		const text = redactor.of([{ uid: agent.uid }]).text(shortened(prompt), 'record')
		const embedder = await embeddings.embedderOf(agent)
		const vector = await vectorOf(embedder, text)
		const hits = await index.search(agent, embedder, { text, limit, threshold, tags: [], ...(vector && { vector }) })
		const ids = hits.map(({ id }) => id)
		return newerFirst((await memoriesAt(store, agent.uid, ids)).map(shown))
	}

	return async (agent, prompt) => {
		// Most agents have no memories.
		if (limit === 0 || prompt.trim() === '' || !(await hasMemories(store, agent.uid))) return []
		const record = await ctx.use('agents').find(agent.name)
		if (record?.config.memory?.recall === false) return []
		const found = find(agent, prompt)
		try {
			return await within(ALL_MS, 'long-term memory', found)
		} catch (error) {
			found.catch(() => {})
			// The index of an agent that was idle for long is being filled; the next prompt finds it filled.
			if (!(error instanceof Late)) log.warn({ agent: agent.name }, `no memories for a prompt: ${messageOf(error)}`)
			return []
		}
	}
}

function shortened(prompt: string): string {
	const half = PROMPT_CHARACTERS / 2
	if (prompt.length <= PROMPT_CHARACTERS) return prompt
	return `${prompt.slice(0, half)}\n${prompt.slice(-half)}`.toWellFormed()
}
