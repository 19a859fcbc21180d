/**
 * Tracks the conversations that are being summarized. Not part of a plugin instance: a summary may not have settled when the next
 * instance starts.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { conversationKey } from './keys.ts'

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
