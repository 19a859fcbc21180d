/** Plans which memories are merged, and into what. Changes nothing. */
import { newId } from '../../../core/util/ids.ts'
import type { AgentRef } from '../../../core/plugin.ts'
import type { Store } from '../../../core/store/ports.ts'
import type { Embeddings } from '../embeddings.ts'
import type { MemoryIndex } from '../memory-index.ts'
import { keys, memoriesAt } from '../records.ts'
import type { GroupRecord, MemoryRecord } from '../records.ts'
import { HASHING } from '../hashing.ts'
import { consolidatedIn, persona, promptOf } from './consolidation.ts'
import type { Consolidated, Note } from './consolidation.ts'
import { GROUP_LIMIT } from './groups.ts'
import type { AskModel } from './model.ts'
import { repetitions, sentencesOf } from './repetitions.ts'
import type { Sentences } from './repetitions.ts'

/** The newest memories stay as they are: they may belong to the agent's current work. */
const RECENT = 10
/** Limits of one request to a model, and of requests in one compaction. */
const NOTES = 40
const NOTE_CHARACTERS = 16_000
const MAX_REQUESTS = 20
/** Maximum number of memories in a group of related ones, and their minimum similarity. */
const RELATED = 12
const MIN_SIMILARITY = { built_in: 0.45, model: 0.6 }

export async function planOf(
	store: Store,
	agent: AgentRef,
	compaction: string,
	{ index, embeddings, ask }: { index: MemoryIndex; embeddings: Embeddings; ask: AskModel | undefined },
): Promise<GroupRecord[]> {
	const memories: Sentences[] = []
	for await (const { value } of store.list<MemoryRecord>(keys.memories(agent.uid))) {
		// A replaced memory must not take effect again as part of another one.
		if (value.replaced_by === undefined) memories.push(sentencesOf(value.id, value.content))
	}
	const groups: GroupRecord[] = []
	/** Without `content`, the merged memory gets the content of the last one, which contains the others. */
	const add = async (ids: string[], content?: string): Promise<void> => {
		const records = await recordsOf(store, agent, ids)
		const newest = records.at(-1)
		const last = records.find(({ id }) => id === ids.at(-1))
		if (!newest || !last || records.length !== ids.length) return // deleted meanwhile
		const made: GroupRecord['made'] = {
			id: newId(),
			content: content ?? last.content,
			tags: [...new Set(records.flatMap(({ tags }) => tags))],
			...linksOf(records),
			created_at: newest.created_at,
			made_by: { compaction, group: String(groups.length).padStart(6, '0') },
		}
		groups.push({ ids, made })
	}

	const grouped = new Set<string>()
	for (const ids of repetitions(memories, GROUP_LIMIT)) {
		await add(ids)
		for (const id of ids) grouped.add(id)
	}
	if (!ask) return groups
	const older = memories.slice(0, Math.max(0, memories.length - RECENT)).map(({ id }) => id)
	const ungrouped = older.filter((id) => !grouped.has(id))
	for (const { ids, content } of await consolidate(store, agent, ungrouped, { index, embeddings, ask }))
		await add(ids, content)
	return groups
}

/** The merged memory replaces everything outside the group that its originals replaced. */
function linksOf(records: readonly MemoryRecord[]): Pick<MemoryRecord, 'replaces'> {
	const own = new Set(records.map(({ id }) => id))
	const replaces = [...new Set(records.flatMap((one) => one.replaces ?? []))].filter((id) => !own.has(id))
	return replaces.length > 0 ? { replaces } : {}
}

async function consolidate(
	store: Store,
	agent: AgentRef,
	ids: string[],
	{ index, embeddings, ask }: { index: MemoryIndex; embeddings: Embeddings; ask: AskModel },
): Promise<Consolidated[]> {
	if (ids.length < 2) return []
	const embedder = await embeddings.embedderOf(agent)
	const floor = embedder.id === HASHING ? MIN_SIMILARITY.built_in : MIN_SIMILARITY.model
	const related = await index.groups(agent, embedder, ids, floor, RELATED)
	const found: Consolidated[] = []
	let notes: Note[] = []
	let requests = 0
	const flush = async (): Promise<void> => {
		if (notes.length < 2 || requests === MAX_REQUESTS) return
		requests++
		found.push(...consolidatedIn(await ask(promptOf(notes), persona), notes))
		notes = []
	}
	for (const group of related) {
		const records = await recordsOf(store, agent, group)
		const characters = [...notes, ...records].reduce((sum, { content }) => sum + content.length, 0)
		if (notes.length + records.length > NOTES || characters > NOTE_CHARACTERS) await flush()
		if (requests === MAX_REQUESTS) break
		if (records.reduce((sum, { content }) => sum + content.length, 0) <= NOTE_CHARACTERS) notes.push(...records)
	}
	await flush()
	return found
}

/** Oldest first. */
async function recordsOf(store: Store, { uid }: AgentRef, ids: readonly string[]): Promise<MemoryRecord[]> {
	return (await memoriesAt(store, uid, ids)).toSorted((a, b) => (a.id < b.id ? -1 : 1))
}
