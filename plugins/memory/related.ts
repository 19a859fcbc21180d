/** Automatic recall: finds the memories that match a prompt, in bounded time. */
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

/** How long a run waits for the embedding of its prompt, and for recall as a whole. */
const EMBEDDING_MS = 500
const ALL_MS = 1_000
/** After an embedder was late, no run waits for it for this long. */
const LATE_EMBEDDER_MS = 60_000
const EMBEDDERS = 1_000
/** A longer prompt is reduced to its beginning and its end, where people say what they want. */
const PROMPT_CHARACTERS = 4_000

export function relatedOf(
	ctx: Context<MemorySettings>,
	{ index, embeddings }: { index: MemoryIndex; embeddings: Embeddings },
): LongTermMemory['related'] {
	const { store, config, redactor, log } = ctx
	const { limit, threshold } = config.recall
	/** Embedders that were late, by id, and until when (`performance.now()`) no run waits for them. */
	const lateUntil = new BoundedMap<string, number>(EMBEDDERS)

	const vectorOf = async (embedder: Embedder, text: string): Promise<Float32Array | undefined> => {
		const embedding = embeddings.ofQuery(embedder, text)
		const patience = (lateUntil.get(embedder.id) ?? 0) > performance.now() ? 0 : EMBEDDING_MS
		return within(patience, `embedder "${embedder.id}"`, embedding).catch(() => {
			if (patience > 0) lateUntil.set(embedder.id, performance.now() + LATE_EMBEDDER_MS)
			return undefined
		})
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
			// Late is expected while the index of an agent that was idle for long is filled.
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
