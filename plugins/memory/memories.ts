/** The service: storing, searching and deleting memories. */
import { hash } from 'node:crypto'
import { isFault } from '../../core/errors.ts'
import { newId, now } from '../../core/util/ids.ts'
import type { AgentRef, Context } from '../../core/plugin.ts'
import { agentScope } from '../../core/store/agent-scope.ts'
import { change } from '../../core/store/change.ts'
import type { Op } from '../../core/store/ports.ts'
import type { LongTermMemory, Memory, MemorySettings, SearchResult } from './contract.ts'
import { countAll } from './counts.ts'
import type { Counts } from './counts.ts'
import type { Embeddings } from './embeddings.ts'
import type { MemoryIndex } from './memory-index.ts'
import { hasMemories, keys, shown } from './records.ts'
import type { CallRecord, MemoryRecord } from './records.ts'

type Memories = Pick<LongTermMemory, 'store' | 'search' | 'forget' | 'count' | 'list'>

/** Characters of the contents of one page. */
const PAGE_CHARACTERS = 1024 * 1024
const COMMIT_LIMIT = 100

export function memoriesOf(
	ctx: Context<MemorySettings>,
	{ counts, index, embeddings }: { counts: Counts; index: MemoryIndex; embeddings: Embeddings },
): Memories {
	const { store, config, redactor } = ctx
	const redacted = ({ uid }: AgentRef, text: string): string => redactor.of([{ uid }]).text(text, 'record')

	const known = async (uid: string, call: string): Promise<CallRecord | undefined> =>
		(await store.get<CallRecord>(keys.call(uid, call)))?.value

	return {
		async store(agent, { content, tags = [], key }) {
			const { uid } = agent
			const text = redacted(agent, content)
			const labels = [...new Set(tags.map((tag) => redacted(agent, tag)))]
			const call = key === undefined ? undefined : hashOf(key)
			const earlier = call === undefined ? undefined : await known(uid, call)
			if (earlier) return { ...earlier, content: text, tags: labels }

			const record: MemoryRecord = {
				id: newId(),
				content: text,
				tags: labels,
				created_at: now(),
				...(call !== undefined && { call }),
			}
			const { id, created_at } = record
			const ops: Op[] = [{ key: keys.memory(uid, id), value: record, expect: null }]
			if (call !== undefined) {
				ops.push({ key: keys.call(uid, call), value: { id, created_at } satisfies CallRecord, expect: null })
			}
			await counts.reserve(uid, config.max_per_agent)
			try {
				await store.commit(agentScope(uid), ops)
			} catch (error) {
				counts.add(uid, -1)
				const other = call !== undefined && isFault(error, 'conflict') ? await known(uid, call) : undefined
				if (other) return { ...other, content: text, tags: labels }
				throw error
			}
			const embedder = await embeddings.embedderOf(agent)
			await index.added(agent, [record])
			await embeddings.make(agent, embedder, [id])
			return shown(record)
		},

		async search(agent, query, limit, tags = []) {
			if (!index.isOpen(agent) && !(await hasMemories(store, agent.uid))) return []
			const text = redacted(agent, query)
			const embedder = await embeddings.embedderOf(agent)
			const vector = await embeddings.ofQuestion(embedder, text)
			const hits = await index.search(agent, embedder, { text, limit, tags, ...(vector && { vector }) })
			const entries = await Promise.all(hits.map(({ id }) => store.get<MemoryRecord>(keys.memory(agent.uid, id))))
			const found = hits.flatMap(({ similarity }, at) => {
				const entry = entries[at] // deleted meanwhile: not shown
				return entry ? [{ ...shown(entry.value), similarity }] : []
			})
			const without = found.filter(({ similarity }) => similarity === null)
			const made =
				without.length === 0
					? []
					: await index.similarity(
							text,
							without.map(({ content }) => content),
						)
			const ids = without.map(({ id }) => id)
			return found.map(({ similarity, ...memory }): SearchResult => ({
				...memory,
				similarity: similarity ?? made[ids.indexOf(memory.id)] ?? 0,
			}))
		},

		async forget(agent, id) {
			const { uid } = agent
			await counts.settled(uid)
			const forgotten = await change(store, agentScope(uid), async () => {
				const entry = await store.get<MemoryRecord>(keys.memory(uid, id))
				if (!entry) return { result: false }
				// Originals first: an interrupted deletion can be requested again as long as the memory exists.
				const originals = await archivedOf(uid, entry.value)
				for (let from = 0; from < originals.length; from += COMMIT_LIMIT) {
					await store.commit(agentScope(uid), originals.slice(from, from + COMMIT_LIMIT))
				}
				const [memory, ...rest] = removal(uid, entry.value)
				return { ops: [{ ...(memory as Op), expect: entry.rev }, ...rest], result: true }
			})
			if (!forgotten) return false
			counts.add(uid, -1)
			await index.removed(agent, [id])
			return true
		},

		count: ({ uid }) => countAll(store, uid),

		async list({ uid }, { limit, cursor }) {
			const memories: Memory[] = []
			let characters = 0
			const after = cursor === undefined ? {} : { after: keys.memory(uid, cursor) }
			for await (const { value } of store.list<MemoryRecord>(keys.memories(uid), { reverse: true, ...after })) {
				characters += value.content.length
				const isFull = memories.length === limit || characters > PAGE_CHARACTERS
				if (isFull && memories.length > 0) return { memories, next_cursor: memories.at(-1)?.id ?? null }
				memories.push(shown(value))
			}
			return { memories, next_cursor: null }
		},
	}

	/** The originals from which a compaction made it, and their originals. */
	async function archivedOf(uid: string, record: MemoryRecord): Promise<Op[]> {
		if (!record.made_by) return []
		const { compaction, group } = record.made_by
		const ops: Op[] = [{ key: keys.group(uid, compaction, group), value: undefined }]
		for await (const { key, value } of store.list<MemoryRecord>(keys.archive(uid, compaction, group))) {
			const [, ...rest] = removal(uid, value)
			ops.push({ key, value: undefined }, ...rest, ...(await archivedOf(uid, value)))
		}
		return ops
	}
}

/** Deletes a memory and everything that depends on it; the memory itself first. */
function removal(uid: string, { id, call }: MemoryRecord): Op[] {
	const ops: Op[] = [
		{ key: keys.memory(uid, id), value: undefined },
		{ key: keys.vector(uid, id), value: undefined },
	]
	if (call !== undefined) ops.push({ key: keys.call(uid, call), value: undefined })
	return ops
}

function hashOf(key: string): string {
	return hash('sha256', key)
}
