/**
 * Compacts agents' memories. Planning changes nothing. Once the plan is durable, the compaction is always completed, even
 * after a crash; so is an undo once it has started.
 */
import { Fault, isFault, messageOf } from '../../../core/errors.ts'
import { newId, now } from '../../../core/util/ids.ts'
import type { AgentRef, Context } from '../../../core/plugin.ts'
import { agentScope } from '../../../core/store/agent-scope.ts'
import type { Op } from '../../../core/store/ports.ts'
import type { Compaction, LongTermMemory, MemorySettings } from '../contract.ts'
import { countAll } from '../counts.ts'
import type { Counts } from '../counts.ts'
import type { Embeddings } from '../embeddings.ts'
import type { MemoryIndex } from '../memory-index.ts'
import { keys } from '../records.ts'
import type { CompactionRecord, GroupRecord } from '../records.ts'
import { applyGroup, linkToMerged, linkToOriginals, undoGroup } from './groups.ts'
import { modelOf } from './model.ts'

export interface Compactions extends Pick<LongTermMemory, 'compact' | 'compactions' | 'undo'> {
	/** Completes compactions that a crash interrupted. */
	resume(): Promise<void>
}

const SHOWN = 100

export function compactionsOf(
	ctx: Context<MemorySettings>,
	{ counts, index, embeddings }: { counts: Counts; index: MemoryIndex; embeddings: Embeddings },
): Compactions {
	const { store, log } = ctx
	/**
	 * Compactions running in this process, by agent. `isEnding`: its final status can already be read, so the next compaction
	 * waits for it instead of failing with `conflict`.
	 */
	const active = new Map<string, { done: Promise<unknown>; isEnding: boolean }>()

	const exclusively = async <T>(agent: AgentRef, work: () => Promise<T>): Promise<T> => {
		for (let other = active.get(agent.uid); other; other = active.get(agent.uid)) {
			if (!other.isEnding) throw busy(agent)
			await other.done.catch(() => {})
		}
		const done = work().finally(() => active.delete(agent.uid))
		active.set(agent.uid, { done, isEnding: false })
		return done
	}

	/** A caller that reads the final status may start the next compaction at once. */
	const writeFinal = (uid: string, record: CompactionRecord): Promise<unknown> => {
		const own = active.get(uid)
		if (own) own.isEnding = true
		return write(uid, record)
	}

	const write = (uid: string, record: CompactionRecord): Promise<unknown> =>
		store.put(keys.compaction(uid, record.compaction_id), record)

	const allOf = (uid: string): Promise<CompactionRecord[]> =>
		Array.fromAsync(store.list<CompactionRecord>(keys.compactions(uid), { reverse: true }), ({ value }) => value)

	/** Throws `conflict` while a compaction of the agent is in progress. */
	const allUnlessBusy = async (agent: AgentRef): Promise<CompactionRecord[]> => {
		const all = await allOf(agent.uid)
		if (all.some(isRunning)) throw busy(agent)
		return all
	}

	const plan = async (agent: AgentRef, record: CompactionRecord): Promise<void> => {
		const { compaction_id } = record
		const { planOf } = await import('./plan.ts') // loads all the languages, which an idle gateway does not need
		const ask = await modelOf(ctx, agent, compaction_id)
		const groups = await planOf(store, agent, compaction_id, { index, embeddings, ask })
		const ops = groups.map((group): Op => ({
			key: keys.group(agent.uid, compaction_id, group.made.made_by.group),
			value: group,
		}))
		for (let from = 0; from < ops.length; from += 20) {
			await store.commit(agentScope(agent.uid), ops.slice(from, from + 20))
		}
		await write(agent.uid, { ...record, status: 'applying' })
	}

	const apply = async (agent: AgentRef, record: CompactionRecord): Promise<CompactionRecord> => {
		const { uid } = agent
		await counts.settled(uid)
		const embedder = await embeddings.embedderOf(agent)
		let merged = 0
		let removed = 0
		for await (const { value: group } of store.list<GroupRecord>(keys.groups(uid, record.compaction_id))) {
			if (!(await applyGroup(store, uid, group))) continue
			merged++
			removed += group.ids.length - 1
			counts.add(uid, 1 - group.ids.length)
			await index.removed(agent, group.ids)
			await index.added(agent, [group.made])
			await embeddings.make(agent, embedder, [group.made.id])
		}
		await linkToMerged(store, uid)
		const memories_after = record.memories_before - removed
		return { ...record, status: 'completed', ended_at: now(), merged, memories_after }
	}

	const end = async (agent: AgentRef, record: CompactionRecord): Promise<void> => {
		await writeFinal(agent.uid, record)
		const { compaction_id, status, memories_before, memories_after, merged, error } = record
		const payload = { compaction_id, status, memories_before, memories_after, merged, ...(error !== null && { error }) }
		await ctx.emit({ event_type: 'memory.compacted', payload }, agent.name)
	}

	const fail = async (agent: AgentRef, record: CompactionRecord, why: string): Promise<void> => {
		for await (const key of store.keys(keys.groups(agent.uid, record.compaction_id))) await store.delete(key)
		await end(agent, { ...record, status: 'failed', ended_at: now(), error: why })
	}

	const planAndApply = async (agent: AgentRef, record: CompactionRecord): Promise<void> => {
		try {
			await plan(agent, record)
		} catch (error) {
			if (ctx.signal.aborted) return // the next start marks it as failed
			log.warn({ agent: agent.name }, `long-term memory was not compacted: ${messageOf(error)}`)
			return fail(agent, record, messageOf(error))
		}
		await end(agent, await apply(agent, record))
	}

	const restore = async (agent: AgentRef, record: CompactionRecord): Promise<CompactionRecord> => {
		const { uid } = agent
		await counts.settled(uid)
		for await (const { key, value } of store.list<GroupRecord>(keys.groups(uid, record.compaction_id))) {
			await linkToOriginals(store, uid, value)
			await undoGroup(store, uid, key)
		}
		counts.forget(uid)
		await index.drop(uid, false) // restored memories belong at their old positions, between others
		const undone: CompactionRecord = { ...record, status: 'undone' }
		await writeFinal(uid, undone)
		const { compaction_id } = record
		await ctx.emit({ event_type: 'memory.compaction_undone', payload: { compaction_id } }, agent.name)
		return undone
	}

	return {
		async compact(agent) {
			const started = Promise.withResolvers<CompactionRecord>()
			const work = async (): Promise<void> => {
				const earlier = await allUnlessBusy(agent)
				const record: CompactionRecord = {
					compaction_id: newId(),
					agent: agent.name,
					status: 'planning',
					started_at: now(),
					ended_at: null,
					memories_before: await countAll(store, agent.uid),
					memories_after: null,
					merged: 0,
					error: null,
				}
				await write(agent.uid, record)
				await deleteOld(agent.uid, earlier)
				const { compaction_id, memories_before } = record
				await ctx.emit(
					{ event_type: 'memory.compaction_started', payload: { compaction_id, memories_before } },
					agent.name,
				)
				started.resolve(record)
				await planAndApply(agent, record).catch((error: unknown) => logInterruption(agent, error))
			}
			exclusively(agent, work).catch(started.reject)
			return view(await started.promise)
		},
		compactions: async ({ uid }) => (await allOf(uid)).slice(0, SHOWN).map(view),
		undo: (agent, compaction_id) =>
			exclusively(agent, async () => {
				const all = await allUnlessBusy(agent)
				const record = all.find((one) => one.compaction_id === compaction_id)
				if (!record)
					throw new Fault('not_found', `agent "${agent.name}" has no compaction "${compaction_id}"`, {
						hint: { route: 'GET /v1/agents/{id}/memory/compactions', params: { id: agent.name }, does: 'lists them' },
					})
				if (record.status !== 'completed') {
					throw new Fault('conflict', `compaction "${compaction_id}" cannot be undone: it is ${record.status}`)
				}
				const latest = all.find(({ status }) => status === 'completed') ?? record
				if (latest.compaction_id !== compaction_id) {
					throw new Fault('conflict', `compaction "${latest.compaction_id}" came later; undo that one first`)
				}
				const undoing: CompactionRecord = { ...record, status: 'undoing' }
				await write(agent.uid, undoing)
				return view(await restore(agent, undoing))
			}),
		async resume() {
			for await (const agent of ctx.use('agents').list()) {
				for (const record of await allOf(agent.uid)) {
					if (ctx.signal.aborted) return
					if (!isRunning(record) || active.has(agent.uid)) continue
					const complete = async (): Promise<unknown> => {
						if (record.status === 'planning') return fail(agent, record, 'the gateway stopped during planning')
						if (record.status === 'applying') return end(agent, await apply(agent, record))
						return restore(agent, record)
					}
					await exclusively(agent, complete).catch((error: unknown) => logInterruption(agent, error))
				}
			}
		},
	}

	function logInterruption({ name }: AgentRef, error: unknown): void {
		if (isFault(error, 'not_found')) return // the agent was deleted
		log.error({ err: error, agent: name }, 'a compaction was interrupted; the next start completes it')
	}

	/** Keeps completed compactions, since they can be undone. */
	async function deleteOld(uid: string, records: readonly CompactionRecord[]): Promise<void> {
		for (const { compaction_id, status } of records.slice(SHOWN)) {
			if (status === 'failed' || status === 'undone') await store.delete(keys.compaction(uid, compaction_id))
		}
	}
}

function busy({ name }: AgentRef): Fault {
	return new Fault('conflict', `a compaction of agent "${name}" is in progress; wait for the event memory.compacted`)
}

function isRunning(record: CompactionRecord): boolean {
	return view(record).status === 'running'
}

function view(record: CompactionRecord): Compaction {
	const { compaction_id, status, started_at, ended_at, memories_before, memories_after, merged, error } = record
	const shown = status === 'planning' || status === 'applying' || status === 'undoing' ? 'running' : status
	return { compaction_id, status: shown, started_at, ended_at, memories_before, memories_after, merged, error }
}
