/** The service: storing, searching and deleting memories. */
import { hash } from 'node:crypto'
import { Fault } from '../../core/errors.ts'
import { newId, now } from '../../core/util/ids.ts'
import type { AgentRef, Context } from '../../core/plugin.ts'
import { agentScope } from '../../core/store/agent-scope.ts'
import { change } from '../../core/store/change.ts'
import type { Entry, Op } from '../../core/store/ports.ts'
import type { LongTermMemory, Memory, MemorySettings, SearchResult } from './contract.ts'
import { countAll } from './counts.ts'
import type { Counts } from './counts.ts'
import type { Embeddings } from './embeddings.ts'
import type { MemoryIndex } from './memory-index.ts'
import { newerFirst } from './newer-first.ts'
import { hasMemories, keys, memoriesAt, shown } from './records.ts'
import { forgetTexts, findText } from './same-text.ts'
import type { CallRecord, MemoryRecord } from './records.ts'

/** `similarity`: null if it has no vector yet. */
type FoundMemory = Memory & { similarity: number | null }
type Memories = Pick<LongTermMemory, 'store' | 'search' | 'forget' | 'count' | 'list'>

/** Limit of all contents of one page, in characters. */
const PAGE_CHARACTERS = 1024 * 1024
const COMMIT_LIMIT = 100
/** Links that a deletion changes in the same commit. Only a memory that a compaction made may have more. */
const LINKS = 90
const MAX_TAGS = 16
export const MAX_REPLACED = 8
export const MAX_RESULTS = 100

export function memoriesOf(
	ctx: Context<MemorySettings>,
	{ counts, index, embeddings }: { counts: Counts; index: MemoryIndex; embeddings: Embeddings },
): Memories {
	const { store, config, redactor } = ctx
	const redacted = ({ uid }: AgentRef, text: string): string => redactor.of([{ uid }]).text(text, 'record')

	const storedBy = async (uid: string, call: string): Promise<CallRecord | undefined> =>
		(await store.get<CallRecord>(keys.call(uid, call)))?.value

	const find = async (uid: string, id: string | undefined): Promise<Entry<MemoryRecord> | undefined> =>
		id === undefined ? undefined : store.get<MemoryRecord>(keys.memory(uid, id))

	return {
		async store(agent, { content, tags = [], replaces, key }) {
			const { uid } = agent
			const text = redacted(agent, content)
			const labels = [...new Set(tags.map((tag) => redacted(agent, tag)))]
			const call = key === undefined ? undefined : hash('sha256', key)
			const earlier = call === undefined ? undefined : await storedBy(uid, call)
			if (earlier) return { ...earlier, content: text, tags: labels }

			let isReserved = false
			let isNew = false
			const record = await change(store, agentScope(uid), async () => {
				isNew = false
				const { same, older, opsFor } = await findText(store, uid, text)
				const replaced = await existing(uid, replaces ?? [])
				if (same) {
					// Stored again, so it is current again.
					const newer = replaces ? undefined : await find(uid, same.value.replaced_by)
					return mergedInto(uid, same, labels, newer ? [newer] : replaced)
				}
				const other = call === undefined ? undefined : await storedBy(uid, call)
				if (other) return { result: { ...other, content: text, tags: labels } }
				if (!isReserved) await counts.reserve(uid, config.max_per_agent)
				isReserved = true
				isNew = true
				if (older && !replaces) replaced.push(older)
				const made: MemoryRecord = {
					id: newId(),
					content: text,
					tags: labels,
					created_at: now(),
					...(replaced.length > 0 && { replaces: replaced.map(({ value }) => value.id) }),
					...(call !== undefined && { call }),
				}
				const { id, created_at } = made
				const ops: Op[] = [{ key: keys.memory(uid, id), value: made, expect: null }, ...opsFor(id)]
				if (call !== undefined)
					ops.push({ key: keys.call(uid, call), value: { id, created_at } satisfies CallRecord, expect: null })
				return { ops: [...ops, ...linkOps(uid, replaced, id)], result: made }
			}).catch((error: unknown) => {
				if (isReserved) counts.add(uid, -1)
				throw error
			})
			if (isReserved && !isNew) counts.add(uid, -1)
			await index.added(agent, [record])
			if (isNew) await embeddings.make(agent, await embeddings.embedderOf(agent), [record.id])
			return shown(record)
		},

		async search(agent, query, limit, tags = []) {
			if (!Number.isInteger(limit) || limit < 1 || limit > MAX_RESULTS)
				throw new Fault('invalid_request', `the limit of a search must be a whole number from 1 to ${MAX_RESULTS}`)
			if (!(await hasMemories(store, agent.uid))) return []
			const text = redacted(agent, query)
			const embedder = await embeddings.embedderOf(agent)
			const vector = await embeddings.ofQuery(embedder, text)
			const hits = await index.search(agent, embedder, { text, limit, tags, ...(vector && { vector }) })
			const similarities = new Map(hits.map(({ id, similarity }) => [id, similarity]))
			const records = await memoriesAt(store, agent.uid, [...similarities.keys()])
			const found = records.map((one): FoundMemory => ({ ...shown(one), similarity: similarities.get(one.id) ?? null }))
			found.push(...(await successorsOf(agent.uid, found)))
			const results = newerFirst(found).slice(0, limit)
			const without = results.flatMap(({ similarity, content }) => (similarity === null ? content : []))
			const made = without.length === 0 ? [] : await index.similarity(text, without)
			return results.map(({ similarity, ...memory }): SearchResult => ({
				...memory,
				similarity: similarity ?? made.shift() ?? 0,
			}))
		},

		async forget(agent, id) {
			const { uid } = agent
			await counts.settled(uid)
			const forgotten = await change(store, agentScope(uid), async () => {
				const entry = await find(uid, id)
				if (!entry) return { result: false }
				// Originals first: an interrupted deletion can be requested again as long as the memory exists.
				const originals = await archivedOf(uid, entry.value)
				for (let from = 0; from < originals.length; from += COMMIT_LIMIT) {
					await store.commit(agentScope(uid), originals.slice(from, from + COMMIT_LIMIT))
				}
				const [memory, ...rest] = await removal(uid, entry.value)
				const links = await unlinkOps(uid, entry.value)
				return { ops: [{ ...(memory as Op), expect: entry.rev }, ...rest, ...links], result: true }
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

	/** The operations that delete the originals from which a compaction made a memory, and their originals. */
	async function archivedOf(uid: string, record: MemoryRecord): Promise<Op[]> {
		if (!record.made_by) return []
		const { compaction, group } = record.made_by
		const ops: Op[] = [{ key: keys.group(uid, compaction, group), value: undefined }]
		for await (const { key, value } of store.list<MemoryRecord>(keys.archive(uid, compaction, group))) {
			const [, ...rest] = await removal(uid, value)
			ops.push({ key, value: undefined }, ...rest, ...(await archivedOf(uid, value)))
		}
		return ops
	}

	/** The memories that replace any of `found`, directly or indirectly, and are missing from it. */
	async function successorsOf(uid: string, found: readonly Memory[]): Promise<FoundMemory[]> {
		const known = new Set(found.map(({ id }) => id))
		const missing: FoundMemory[] = []
		for (const memory of found) {
			for (let id = memory.replaced_by; id !== undefined && !known.has(id);) {
				known.add(id)
				const entry = await find(uid, id)
				if (entry) missing.push({ ...shown(entry.value), similarity: null })
				id = entry?.value.replaced_by
			}
		}
		return missing
	}

	/** The operations that delete a memory and its other records; the memory itself first. */
	async function removal(uid: string, record: MemoryRecord): Promise<Op[]> {
		const { id, call } = record
		const ops: Op[] = [
			{ key: keys.memory(uid, id), value: undefined },
			{ key: keys.vector(uid, id), value: undefined },
		]
		if (call !== undefined) ops.push({ key: keys.call(uid, call), value: undefined })
		return [...ops, ...(await forgetTexts(store, uid, record))]
	}

	/** Memories that the deleted one replaced are now replaced by its successor, or are current again if it has none. */
	async function unlinkOps(uid: string, { id, replaces = [], replaced_by }: MemoryRecord): Promise<Op[]> {
		const ops: Op[] = []
		for (const other of new Set([replaced_by, ...replaces.slice(0, LINKS)])) {
			const entry = await find(uid, other)
			if (!entry) continue
			const { replaces: older = [], replaced_by: newer, ...rest } = entry.value
			const left = [...new Set(older.flatMap((one) => (one === id ? replaces : [one])))].filter(
				(one) => one !== rest.id,
			)
			// The link may lead to a memory that a compaction merged into the deleted one.
			const isGone = newer === id || (newer !== undefined && !(await find(uid, newer)))
			const next = isGone ? replaced_by : newer
			const value: MemoryRecord = {
				...rest,
				...(left.length > 0 && { replaces: left.slice(-MAX_REPLACED) }),
				...(next !== undefined && next !== rest.id && { replaced_by: next }),
			}
			ops.push({ key: entry.key, value, expect: entry.rev })
		}
		return ops
	}

	async function existing(uid: string, ids: readonly string[]): Promise<Entry<MemoryRecord>[]> {
		return Promise.all(
			[...new Set(ids)].map(async (id) => {
				const entry = await find(uid, id)
				if (entry) return entry
				throw new Fault('not_found', `replaces: there is no memory "${id}"; use ids that memory.recall returns`)
			}),
		)
	}
}

/** Adds the tags and the replaced memories of a repeated text to the memory that already has it. */
function mergedInto(
	uid: string,
	{ key, value, rev }: Entry<MemoryRecord>,
	tags: readonly string[],
	replaced: readonly Entry<MemoryRecord>[],
): { ops?: Op[]; result: MemoryRecord } {
	// A memory that a compaction made may have more tags, and keeps them.
	const all = [...new Set([...value.tags, ...tags])].slice(0, Math.max(MAX_TAGS, value.tags.length))
	const others = replaced.filter((one) => one.value.id !== value.id)
	if (all.length === value.tags.length && others.length === 0) return { result: value }
	const { replaced_by, replaces = [], ...rest } = value
	const links = [...new Set([...replaces, ...others.map((one) => one.value.id)])].slice(-MAX_REPLACED)
	const result: MemoryRecord = {
		...rest,
		tags: all,
		...(links.length > 0 && { replaces: links }),
		...(replaced_by !== undefined && !links.includes(replaced_by) && { replaced_by }),
	}
	return { ops: [{ key, value: result, expect: rev }, ...linkOps(uid, others, value.id)], result }
}

function linkOps(uid: string, replaced: readonly Entry<MemoryRecord>[], id: string): Op[] {
	return replaced.map(({ value: { replaces = [], ...value }, rev }) => {
		const links = replaces.filter((one) => one !== id)
		const linked: MemoryRecord = { ...value, ...(links.length > 0 && { replaces: links }), replaced_by: id }
		return { key: keys.memory(uid, value.id), value: linked, expect: rev }
	})
}
