/**
 * The main thread's view of the agents' search indexes. An index is filled from the store when first needed, updated with
 * every write, and filled again after the index thread has evicted it.
 */
import { Fault, isFault } from '../../core/errors.ts'
import type { AgentRef, Context } from '../../core/plugin.ts'
import type { Entry } from '../../core/store/ports.ts'
import type { Embedder } from './embedders.ts'
import type { Hit, SearchQuery, VectorRow } from './search/protocol.ts'
import type { IndexThread } from './search/thread.ts'
import { keys, vectorOf } from './records.ts'
import type { MemoryRecord, VectorRecord } from './records.ts'
import { HASHING } from './hashing.ts'

export type MemoryIndex = ReturnType<typeof memoryIndex>

/** Limits of one message: rows, and characters of their contents. */
const ROWS = 256
const CHARACTERS = 1024 * 1024
const ATTEMPTS = 3

interface State {
	embedder: string
	/** While the index is being filled: updates to send after the fill, which may not include them. Then null. */
	pendingUpdates: (() => Promise<unknown>)[] | null
	ready: Promise<void>
}

/** `onMissing`: called with the memories of an agent that have no vector of its embedder. */
export function memoryIndex(
	{ store, signal }: Pick<Context, 'store' | 'signal'>,
	thread: IndexThread,
	onMissing: (agent: AgentRef, embedder: Embedder, ids: string[]) => void,
) {
	const states = new Map<string, State>()
	thread.onLost((uid) => {
		if (uid === 'all') states.clear()
		else states.delete(uid)
	})

	const open = (agent: AgentRef, embedder: Embedder): Promise<void> => {
		const known = states.get(agent.uid)
		if (known?.embedder === embedder.id) return known.ready
		const state: State = { embedder: embedder.id, pendingUpdates: [], ready: Promise.resolve() }
		states.set(agent.uid, state)
		state.ready = fill(agent, embedder, state).catch((error: unknown) => {
			if (states.get(agent.uid) === state) states.delete(agent.uid)
			throw error
		})
		return state.ready
	}

	const fill = async ({ name, uid }: AgentRef, embedder: Embedder, state: State): Promise<void> => {
		const without: string[] = []
		await thread.ask('begin', { uid, embedder: embedder.id })
		let entries: Entry<MemoryRecord>[] = []
		let characters = 0
		const flush = async (): Promise<void> => {
			const rows = await Promise.all(entries.map(({ value }) => rowOf(uid, value, embedder)))
			entries = []
			characters = 0
			if (embedder.embed) without.push(...rows.filter(({ vector }) => !vector).map(({ id }) => id))
			await thread.ask('fill', { uid, rows })
		}
		for await (const entry of store.list<MemoryRecord>(keys.memories(uid))) {
			if (signal.aborted || states.get(uid) !== state) throw replaced()
			entries.push(entry)
			characters += entry.value.content.length
			if (entries.length === ROWS || characters >= CHARACTERS) await flush()
		}
		await flush()
		if (states.get(uid) !== state) throw replaced()
		// From here on writes go to the thread directly, after these in its queue.
		const updates = state.pendingUpdates?.map((send) => send()) ?? []
		state.pendingUpdates = null
		await Promise.all([...updates, thread.ask('ready', { uid })])
		if (without.length > 0) onMissing({ name, uid }, embedder, without)
	}

	const rowOf = async (uid: string, record: MemoryRecord, embedder?: Embedder): Promise<VectorRow> => {
		const { id, content, tags, created_at } = record
		const row: VectorRow = { id, content, tags, at: Date.parse(created_at) }
		if (!embedder || embedder.id === HASHING) return row
		const entry = await store.get<VectorRecord>(keys.vector(uid, id))
		return entry?.value.embedder === embedder.id ? { ...row, vector: vectorOf(entry.value.bytes) } : row
	}

	/** Runs a query, and fills the index first if necessary. `query` returns null if the index was evicted meanwhile. */
	const withIndex = async <R>(agent: AgentRef, embedder: Embedder, query: () => Promise<R | null>): Promise<R> => {
		for (let attempt = 1; ; attempt++) {
			try {
				await open(agent, embedder)
				const answer = await query()
				if (answer !== null) return answer
				states.delete(agent.uid)
				throw new Fault('unavailable', 'memory is searched by too many agents at once; try again')
			} catch (error) {
				if (!isFault(error, 'unavailable') || signal.aborted || attempt === ATTEMPTS) throw error
			}
		}
	}

	/** The write is already in the store: after a failed update the index is filled again before it is searched. */
	const refillOnFailure = async (uid: string, update: Promise<unknown>): Promise<void> => {
		await update.catch(() => states.delete(uid))
	}

	return {
		/** After the write is durable. */
		async added({ uid }: AgentRef, records: readonly MemoryRecord[]): Promise<void> {
			const state = states.get(uid)
			if (!state) return // the fill before the next search includes it
			const rows = await Promise.all(records.map((record) => rowOf(uid, record)))
			const add = () => thread.ask('add', { uid, rows })
			state.pendingUpdates?.push(add)
			await refillOnFailure(uid, state.pendingUpdates ? state.ready : add())
		},
		async removed({ uid }: AgentRef, ids: string[]): Promise<void> {
			const state = states.get(uid)
			if (!state) return
			const remove = () => thread.ask('remove', { uid, ids })
			if (state.pendingUpdates) state.pendingUpdates.push(remove)
			else await refillOnFailure(uid, remove())
		},
		async embedded(uid: string, embedder: string, vectors: { id: string; vector: Float32Array }[]): Promise<void> {
			if (states.get(uid)?.embedder === embedder)
				await refillOnFailure(uid, thread.ask('vectors', { uid, embedder, vectors }))
		},
		search: (agent: AgentRef, embedder: Embedder, query: SearchQuery): Promise<Hit[]> =>
			withIndex(agent, embedder, () => thread.ask('search', { uid: agent.uid, query })),
		groups: (agent: AgentRef, embedder: Embedder, ids: string[], floor: number, most: number): Promise<string[][]> =>
			withIndex(agent, embedder, () => thread.ask('groups', { uid: agent.uid, ids, floor, most })),
		/** Computed with the built-in embedder, for memories that have no vector yet. */
		similarity: (text: string, contents: string[]) => thread.ask('similarity', { text, contents }),
		/** Discards an index until it is next needed; `file`: deletes its file as well. */
		async drop(uid: string, file: boolean): Promise<void> {
			states.delete(uid)
			await refillOnFailure(uid, thread.ask('drop', { uid, file }))
		},
	}
}

function replaced(): Fault {
	return new Fault('unavailable', 'the search index was replaced; try again')
}
