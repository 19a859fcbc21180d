/**
 * Embeddings that a server makes, made up for whatever lacks one: what was just stored, what a failing server left behind,
 * everything after the embedder was changed. The memories are in the store already; nothing is lost where this fails.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { messageOf } from '../../core/errors.ts'
import type { AgentRef, Context } from '../../core/plugin.ts'
import type { Op } from '../../core/store/ports.ts'
import { BATCH, embed } from './embedder.ts'
import type { Embedder } from './embedder.ts'
import type { MemoryIndex } from './memory-index.ts'
import { bytesOf, keys, scopeOf } from './records.ts'
import type { MemoryRecord, VectorRecord } from './records.ts'

export interface Embeddings {
	/** Settles once they are made, or when the first attempt failed, or after two seconds; never throws. */
	make(agent: AgentRef, embedder: Embedder, ids: readonly string[]): Promise<void>
	/** Of a question; undefined where the server fails. */
	ofQuestion(embedder: Embedder, text: string): Promise<Float32Array | undefined>
	forget(uid: string): void
}

/** After so many failures in a row it waits until the agent's index is filled the next time, such as after a restart. */
const DELAYS_MS = [1_000, 5_000, 30_000, 120_000, 600_000, 1_800_000]
const PATIENCE_MS = 2_000
const QUESTION_MS = 5_000
const QUESTIONS_KEPT = 256

interface Lane {
	agent: AgentRef
	embedder: Embedder
	lacking: Set<string>
	/** Settles with the present attempt. */
	attempt: Promise<void>
	abort: AbortController
}

export function embeddingsOf(
	ctx: Pick<Context, 'store' | 'log' | 'signal'>,
	index: () => Pick<MemoryIndex, 'embedded'>,
): Embeddings {
	const { store, log, signal } = ctx
	/** By agent; there is one only while something is lacking. */
	const lanes = new Map<string, Lane>()
	const questions = new Map<string, Float32Array>()

	const makeBatch = async ({ agent: { uid }, embedder, lacking, abort }: Lane): Promise<void> => {
		if (!embedder.order) return lacking.clear()
		const ids = [...lacking].slice(0, BATCH)
		const found = await Promise.all(ids.map((id) => store.get<MemoryRecord>(keys.memory(uid, id))))
		const records = found.flatMap((entry) => entry?.value ?? [])
		if (records.length > 0) {
			const both = AbortSignal.any([signal, abort.signal])
			const made = await embed(
				embedder.order,
				records.map(({ content }) => content),
				both,
			)
			const vectors = records.map(({ id }, at) => ({ id, vector: made[at] as Float32Array }))
			const ops: Op[] = vectors.map(({ id, vector }) => ({
				key: keys.vector(uid, id),
				value: { embedder: embedder.id, bytes: bytesOf(vector) } satisfies VectorRecord,
			}))
			await store.commit(scopeOf(uid), ops)
			await forgetOrphans(uid, records)
			await index().embedded({ name: '', uid }, embedder.id, vectors)
		}
		for (const id of ids) lacking.delete(id)
	}

	/** A memory that was forgotten while its embedding was made must leave nothing behind. */
	const forgetOrphans = async (uid: string, records: readonly MemoryRecord[]): Promise<void> => {
		for (const { id } of records) {
			if (!(await store.get(keys.memory(uid, id)))) await store.delete(keys.vector(uid, id))
		}
	}

	const work = async (lane: Lane): Promise<void> => {
		const { agent, embedder, lacking, abort } = lane
		for (let failures = 0; lacking.size > 0 && !abort.signal.aborted && !signal.aborted;) {
			const attempt = makeBatch(lane)
			lane.attempt = attempt.catch(() => {})
			try {
				await attempt
				failures = 0
			} catch (error) {
				if (abort.signal.aborted || signal.aborted) return
				const delay = DELAYS_MS[failures++]
				log.warn({ agent: agent.name, embedder: embedder.id, lacking: lacking.size }, messageOf(error))
				if (delay === undefined) return
				await sleep(delay, undefined, { signal: AbortSignal.any([signal, abort.signal]), ref: false }).catch(() => {})
			}
		}
	}

	const laneOf = (agent: AgentRef, embedder: Embedder, ids: readonly string[]): Lane => {
		const known = lanes.get(agent.uid)
		if (known?.embedder.id === embedder.id) {
			// The key of the provider may be another one by now.
			known.embedder = embedder
			for (const id of ids) known.lacking.add(id)
			return known
		}
		known?.abort.abort()
		const abort = new AbortController()
		const lane: Lane = { agent, embedder, lacking: new Set(ids), attempt: Promise.resolve(), abort }
		lanes.set(agent.uid, lane)
		void work(lane).finally(() => {
			if (lanes.get(agent.uid) === lane) lanes.delete(agent.uid)
		})
		return lane
	}

	return {
		async make(agent, embedder, ids) {
			if (!embedder.order || ids.length === 0 || signal.aborted) return
			const lane = laneOf(agent, embedder, ids)
			const isDone = (): boolean => ids.every((id) => !lane.lacking.has(id))
			const timer = sleep(PATIENCE_MS, 'late', { ref: false })
			// The attempt under way may not have these in it; the one after it has.
			for (let attempts = 0; attempts < 2 && !isDone(); attempts++) {
				if ((await Promise.race([lane.attempt, timer])) === 'late') return
			}
		},
		async ofQuestion({ id, order }, text) {
			if (!order) return undefined
			const key = `${id} ${text}`
			const known = questions.get(key)
			if (known) return known
			try {
				const patience = AbortSignal.any([signal, AbortSignal.timeout(QUESTION_MS)])
				const [vector] = await embed(order, [text], patience)
				if (questions.size >= QUESTIONS_KEPT) questions.delete(questions.keys().next().value ?? '')
				if (vector) questions.set(key, vector)
				return vector
			} catch (error) {
				log.warn({ embedder: id }, `only keywords are searched: ${messageOf(error)}`)
				return undefined
			}
		},
		forget(uid) {
			lanes.get(uid)?.abort.abort()
			lanes.delete(uid)
		},
	}
}
