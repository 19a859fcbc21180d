/** Lists of runs: of one agent, of all, and of those that a conversation started. */
import type { AgentRef, Context } from '../../core/plugin.ts'
import type { Store } from '../../core/store/ports.ts'
import type { RunRecord, RunStatus, Runs } from './contract.ts'
import { ANSWER_CHARACTERS, sizeOf } from './conversation.ts'
import { keys } from './keys.ts'
import type { ConversationQueue, IndexEntry } from './keys.ts'
import { readRun } from './records.ts'
import { isEnded } from './run-state.ts'

/** Limit of runs read for one page of all runs. */
const LOOKED_AT = 5_000

type Source = Pick<Context, 'store' | 'use'>

/** As `Runs.list`. */
export async function runsOfAgent(
	store: Store,
	agent: AgentRef,
	{ limit, before, status }: Parameters<Runs['list']>[1],
): Promise<RunRecord[]> {
	const found: RunRecord[] = []
	let characters = 0
	const after = before === undefined ? {} : { after: keys.run(agent.uid, before) }
	for await (const { value: run } of store.list<RunRecord>(keys.runs(agent.uid), { reverse: true, ...after })) {
		if (run.said || (status !== undefined && run.status !== status)) continue
		characters += sizeOf(run)
		if (characters > ANSWER_CHARACTERS && found.length > 0) break
		found.push(run)
		if (found.length === limit) break
	}
	return found
}

/** As `Runs.listAll`. */
export async function allRuns(
	source: Source,
	{ limit, cursor, status, id, of_uids }: Parameters<Runs['listAll']>[0],
): ReturnType<Runs['listAll']> {
	const runs: RunRecord[] = []
	let characters = 0
	let looked = 0
	let last: string | null = null
	for await (const { run_id, uid } of newestRuns(source, { cursor, status })) {
		if (of_uids && !of_uids.has(uid)) continue
		if (runs.length === limit || looked++ === LOOKED_AT) return { runs, next_cursor: last }
		const isWanted = id === undefined || run_id.startsWith(id) || run_id.endsWith(id)
		const run = isWanted ? await readRun(source.store, uid, run_id) : undefined
		if (run && !run.said && (status === undefined || run.status === status)) {
			characters += sizeOf(run)
			if (characters > ANSWER_CHARACTERS && runs.length > 0) return { runs, next_cursor: last }
			runs.push(run)
		}
		last = run_id
	}
	return { runs, next_cursor: null }
}

/**
 * All runs, or those that may have `status`, with ids below `cursor`. Unfinished runs are read from the conversation queues,
 * since among all runs they may be few and far apart.
 */
async function* newestRuns(
	{ store, use }: Source,
	{ cursor, status }: { cursor?: string | undefined; status?: RunStatus | undefined },
): AsyncGenerator<{ run_id: string; uid: string }> {
	if (status !== undefined && !isEnded(status)) {
		const places: { run_id: string; uid: string }[] = []
		for await (const { uid } of use('agents').list())
			for await (const { value } of store.list<ConversationQueue>(keys.queues(uid)))
				for (const run_id of value.runs) if (cursor === undefined || run_id < cursor) places.push({ run_id, uid })
		yield* places.toSorted((a, b) => (a.run_id > b.run_id ? -1 : 1))
		return
	}
	const after = cursor === undefined ? {} : { after: keys.index(cursor) }
	for await (const { key, value } of store.list<IndexEntry>(keys.indexes(), { reverse: true, ...after }))
		yield { run_id: key.at(-1) ?? '', uid: value.uid }
}

/**
 * Unfinished runs in other conversations that runs of this conversation started, directly or through other runs, oldest first.
 * The runs in between may have ended.
 */
export async function startedIn(store: Store, uid: string, conversation: string): Promise<string[]> {
	const isBelow = async (run_id: string): Promise<boolean> => {
		for (let run = await readRun(store, uid, run_id); run?.parent;) {
			run = await readRun(store, uid, run.parent.run_id)
			if (run?.conversation === conversation) return true
		}
		return false
	}
	const found: string[] = []
	for await (const { key, value } of store.list<ConversationQueue>(keys.queues(uid))) {
		if (key.at(-1) === conversation) continue
		for (const run_id of value.runs) if (await isBelow(run_id)) found.push(run_id)
	}
	return found.toSorted()
}
