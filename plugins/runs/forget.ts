/** Deletes a conversation: its messages, notes and questions, and the sub-agents of its runs. Events stay in the log. */
import type { AgentRef, Context } from '../../core/plugin.ts'
import { agentScope } from '../../core/store/agent-scope.ts'
import { deleteAll } from '../shared/delete-all.ts'
import { resultsKey } from './results.ts'
import type { Op } from '../../core/store/ports.ts'
import type { Question, RunRecord, Runs } from './contract.ts'
import { hasTurns } from './conversation.ts'
import { stop } from './ending.ts'
import type { RunDeps } from './ending.ts'
import { keys } from './keys.ts'
import { forgetRequests } from './requests.ts'
import type { ConversationQueue } from './keys.ts'
import { conversationOfSummaries } from './summary-run.ts'
import { readRun } from './records.ts'

/**
 * Stops the runs of a conversation, including paused and queued ones, and deletes its messages. May be repeated;
 * a mark at `keys.forgetting`, written before, lets the next start finish an interrupted deletion.
 */
export async function forgetConversation(ctx: RunDeps, uid: AgentRef['uid'], conversation: string): Promise<void> {
	const { store } = ctx
	const queue = await store.get<ConversationQueue>(keys.queue(uid, conversation))
	// Newest first, so that no queued run starts only to be stopped.
	for (const run_id of queue?.value.runs.toReversed() ?? []) await stop(ctx, uid, run_id)
	const gone = new Set<string>()
	for await (const key of store.keys(keys.turns(uid, conversation)))
		await forgetWithChildren(ctx, uid, key.at(-1) ?? '', gone)
	for await (const { key, value } of store.list<Question>(keys.questions(uid)))
		if (gone.has(value.run_id)) await store.delete(key)
	await store.delete(keys.shortTerm(uid, conversation))
	await store.delete(keys.marks(uid, conversation))
	await store.delete(keys.summary(uid, conversation))
	const summaries = conversationOfSummaries(conversation)
	if (await hasTurns(store, uid, summaries)) await forgetConversation(ctx, uid, summaries)
	await store.delete(keys.forgetting(uid, conversation))
}

/** Cancels all runs of an agent, and deletes what they store outside the agent's own records. */
export async function forgetRuns({ store }: Pick<Context, 'store'>, runs: Runs, agent: AgentRef): Promise<void> {
	await runs.stopAgent(agent)
	for await (const key of store.keys(keys.runs(agent.uid))) await store.delete(keys.index(key.at(-1) ?? ''))
}

/** Finishes deletions that a crash interrupted. */
export async function finishForgetting(ctx: RunDeps): Promise<void> {
	for await (const { uid } of ctx.use('agents').list()) {
		for await (const key of ctx.store.keys(keys.forgettings(uid))) await forgetConversation(ctx, uid, key.at(-1) ?? '')
	}
}

/** Deletes an ended run's record and the data stored with it. */
export async function forgetRun(
	{ store, use }: Pick<Context, 'store' | 'use'>,
	{ agent_uid: uid, run_id, conversation }: RunRecord,
): Promise<void> {
	const places = [
		keys.family(uid, run_id),
		keys.given(uid, run_id),
		keys.turn(uid, conversation, run_id),
		keys.run(uid, run_id),
	]
	// Before the record, by which a repetition after a crash finds the run.
	await deleteAll(store, resultsKey(uid, run_id))
	await use('attachments').blobs.release(uid, run_id)
	await forgetRequests(store, uid, run_id)
	await store.commit(
		agentScope(uid),
		places.map((key): Op => ({ key, value: undefined })),
	)
	await store.delete(keys.index(run_id))
}

async function forgetWithChildren(ctx: RunDeps, uid: string, run_id: string, gone: Set<string>): Promise<void> {
	// This stops its sub-agents too. They are read afterwards, since it may start more until it has ended.
	await stop(ctx, uid, run_id)
	const run = await readRun(ctx.store, uid, run_id)
	if (!run || gone.has(run_id)) return
	gone.add(run_id)
	for (const child of run.children ?? []) await forgetWithChildren(ctx, uid, child, gone)
	if (run.parent) await ctx.store.delete(keys.shortTerm(uid, run.conversation))
	await forgetRun(ctx, run)
}
