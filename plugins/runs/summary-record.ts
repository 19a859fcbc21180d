/** The stored summary of a conversation's older turns, and the one in progress. */
import { setTimeout as sleep } from 'node:timers/promises'
import { agentScope } from '../../core/store/agent-scope.ts'
import { change } from '../../core/store/change.ts'
import type { Op, Store } from '../../core/store/ports.ts'
import { deleteAll } from '../shared/delete-all.ts'
import type { SummaryRecord } from './contract.ts'
import { hasTurns } from './conversation.ts'
import { conversationKey, keys } from './keys.ts'

export async function readSummary(store: Store, uid: string, conversation: string): Promise<SummaryRecord | undefined> {
	return (await store.get<SummaryRecord>(keys.summary(uid, conversation)))?.value
}

/** False, with no change, if the conversation was deleted meanwhile. */
export function writeSummary(store: Store, uid: string, conversation: string, record: SummaryRecord): Promise<boolean> {
	return change(store, agentScope(uid), async () => {
		const turn = await store.get(keys.turn(uid, conversation, record.through))
		if (!turn) return { result: false }
		const ops: Op[] = [
			{ key: keys.summary(uid, conversation), value: record },
			{ key: turn.key, check: true, expect: turn.rev },
		]
		return { ops, result: true }
	})
}

/** Deletes summaries and marks of conversations without turns. */
export async function forgetEndedSummaries(store: Store, uid: string): Promise<void> {
	for (const prefix of [keys.summaries(uid), keys.allMarks(uid)])
		await deleteAll(store, prefix, async ({ key }) => !(await hasTurns(store, uid, key.at(-1) ?? '')))
}

/** By conversation. Not part of a plugin instance: a summary may not have settled when the next instance starts. */
const inProgress = new Map<string, Promise<unknown>>()

export function isSummarizing(uid: string, conversation: string): boolean {
	return inProgress.has(conversationKey(uid, conversation))
}

/** Runs `work` as the summary of the conversation. Must not be called while `isSummarizing`. */
export function trackSummary<T>(uid: string, conversation: string, work: () => Promise<T>): Promise<T> {
	const key = conversationKey(uid, conversation)
	const done = work().finally(() => inProgress.delete(key))
	inProgress.set(key, done)
	return done
}

/** Waits until the summary in progress has succeeded or failed, at most `ms`. False if none is in progress. */
export async function awaitSummary(uid: string, conversation: string, ms: number): Promise<boolean> {
	const done = inProgress.get(conversationKey(uid, conversation))
	if (!done) return false
	await Promise.race([done.catch(() => {}), sleep(ms, undefined, { ref: false })])
	return true
}
