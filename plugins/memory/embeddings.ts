/**
 * Computes missing embeddings: for new memories, after failures of a server, and for all memories after a change of the
 * embedder. The memories are already stored, so a failure loses nothing.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { messageOf } from '../../core/errors.ts'
import type { AgentRef, Context } from '../../core/plugin.ts'
import { agentScope } from '../../core/store/agent-scope.ts'
import type { Op } from '../../core/store/ports.ts'
import { BoundedMap } from '../../core/util/bounded-map.ts'
import { BATCH } from './embedders.ts'
import type { Embedder, EmbedderOf } from './embedders.ts'
import type { MemoryIndex } from './memory-index.ts'
import { bytesOf, keys } from './records.ts'
import type { MemoryRecord, VectorRecord } from './records.ts'

export type Embeddings = ReturnType<typeof embeddingsOf>

/** Delays of retries. After the last one it gives up until the agent's index is filled again, such as after a restart. */
const DELAYS_MS = [1_000, 5_000, 30_000, 120_000, 600_000, 1_800_000]
/** How long `make` waits. */
const MAKE_WAIT_MS = 2_000
const QUERY_TIMEOUT_MS = 5_000
const CACHED_QUERIES = 256

interface Backlog {
	agent: AgentRef
	embedder: Embedder
	missing: Set<string>
	/** Settles with the current attempt. */
	attempt: Promise<void>
	abort: AbortController
}

export function embeddingsOf(
	ctx: Pick<Context, 'store' | 'log' | 'signal'>,
	embedderOf: EmbedderOf,
	index: () => Pick<MemoryIndex, 'embedded'>,
) {
	const { store, log, signal } = ctx
	/** By agent; an entry exists only while embeddings are missing. */
	const backlogs = new Map<string, Backlog>()
	const queryVectors = new BoundedMap<string, Float32Array>(CACHED_QUERIES)

	const makeBatch = async ({ agent: { uid }, embedder, missing, abort }: Backlog, most: number): Promise<void> => {
		if (!embedder.embed) return missing.clear()
		const ids = [...missing.values().take(most)]
		// Moves them to the end, so that after a failure the others are tried first.
		for (const id of ids) missing.delete(id)
		for (const id of ids) missing.add(id)
		const found = await Promise.all(ids.map((id) => store.get<MemoryRecord>(keys.memory(uid, id))))
		const records = found.flatMap((entry) => entry?.value ?? [])
		if (records.length > 0) {
			const both = AbortSignal.any([signal, abort.signal])
			const made = await embedder.embed(
				records.map(({ content }) => content),
				both,
			)
			const vectors = records.map(({ id }, at) => ({ id, vector: made[at] as Float32Array }))
			const ops: Op[] = vectors.map(({ id, vector }) => ({
				key: keys.vector(uid, id),
				value: { embedder: embedder.id, bytes: bytesOf(vector) } satisfies VectorRecord,
			}))
			await store.commit(agentScope(uid), ops)
			await forgetOrphans(uid, records)
			await index().embedded(uid, embedder.id, vectors)
		}
		for (const id of ids) missing.delete(id)
	}

	/** Deletes the vectors of memories that were deleted while their embedding was computed. */
	const forgetOrphans = async (uid: string, records: readonly MemoryRecord[]): Promise<void> => {
		for (const { id } of records) {
			if (!(await store.get(keys.memory(uid, id)))) await store.delete(keys.vector(uid, id))
		}
	}

	const work = async (backlog: Backlog): Promise<void> => {
		const { agent, embedder, missing, abort } = backlog
		let failures = 0
		// A server refuses a whole request because of one of its texts. So after a failure one text is sent, then two, then four.
		let most = BATCH
		try {
			while (missing.size > 0 && !abort.signal.aborted && !signal.aborted) {
				const attempt = makeBatch(backlog, most)
				backlog.attempt = attempt.catch(() => {})
				try {
					await attempt
					failures = 0
					most = Math.min(BATCH, most * 2)
				} catch (error) {
					if (abort.signal.aborted || signal.aborted) return
					most = 1
					const delay = DELAYS_MS[failures++]
					log.warn({ agent: agent.name, embedder: embedder.id, missing: missing.size }, messageOf(error))
					if (delay === undefined) return
					await sleep(delay, undefined, { signal: AbortSignal.any([signal, abort.signal]), ref: false }).catch(() => {})
				}
			}
		} finally {
			// In the same turn as the last check of `missing`, so that a memory added later starts a new backlog.
			if (backlogs.get(agent.uid) === backlog) backlogs.delete(agent.uid)
		}
	}

	const backlogOf = (agent: AgentRef, embedder: Embedder, ids: readonly string[]): Backlog => {
		const known = backlogs.get(agent.uid)
		if (known?.embedder.id === embedder.id) {
			// The key of the provider may have changed.
			known.embedder = embedder
			for (const id of ids) known.missing.add(id)
			return known
		}
		known?.abort.abort()
		const abort = new AbortController()
		const backlog: Backlog = { agent, embedder, missing: new Set(ids), attempt: Promise.resolve(), abort }
		backlogs.set(agent.uid, backlog)
		void work(backlog)
		return backlog
	}

	return {
		embedderOf,
		/** Settles when they are computed, when the first attempt has failed, or after two seconds; never throws. */
		async make(agent: AgentRef, embedder: Embedder, ids: readonly string[]): Promise<void> {
			if (!embedder.embed || ids.length === 0 || signal.aborted) return
			const backlog = backlogOf(agent, embedder, ids)
			const isDone = (): boolean => ids.every((id) => !backlog.missing.has(id))
			const timer = sleep(MAKE_WAIT_MS, 'late', { ref: false })
			// The current attempt may not include these; the next one does.
			for (let attempts = 0; attempts < 2 && !isDone(); attempts++) {
				if ((await Promise.race([backlog.attempt, timer])) === 'late') return
			}
		},
		/** Embedding of a query; undefined if the server fails. */
		async ofQuery(embedder: Embedder, text: string): Promise<Float32Array | undefined> {
			const { id } = embedder
			if (!embedder.embed) return undefined
			const key = `${id} ${text}`
			const known = queryVectors.get(key)
			if (known) return known
			try {
				const either = AbortSignal.any([signal, AbortSignal.timeout(QUERY_TIMEOUT_MS)])
				const [vector] = await embedder.embed([text], either)
				if (vector) queryVectors.set(key, vector)
				return vector
			} catch (error) {
				log.warn({ embedder: id }, `only keywords are searched: ${messageOf(error)}`)
				return undefined
			}
		},
		forget(uid: string): void {
			backlogs.get(uid)?.abort.abort()
			backlogs.delete(uid)
		},
	}
}
