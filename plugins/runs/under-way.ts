/** Which conversations are being summarized. Not part of a plugin instance, as runs are not. */
import { setTimeout as sleep } from 'node:timers/promises'

const underWay = new Map<string, Promise<unknown>>()

export function isUnderWay(uid: string, conversation: string): boolean {
	return underWay.has(keyOf(uid, conversation))
}

/** Does `work`, which is under way until it settles. Not to be called while other work of the conversation is. */
export function whileUnderWay<T>(uid: string, conversation: string, work: () => Promise<T>): Promise<T> {
	const key = keyOf(uid, conversation)
	const done = work().finally(() => underWay.delete(key))
	underWay.set(key, done)
	return done
}

/** Settles once the summary is there, or has failed, or after `ms`. False if none was being made. */
export async function awaitSummary(uid: string, conversation: string, ms: number): Promise<boolean> {
	const done = underWay.get(keyOf(uid, conversation))
	if (!done) return false
	await Promise.race([done.catch(() => {}), sleep(ms, undefined, { ref: false })])
	return true
}

export function keyOf(uid: string, conversation: string): string {
	return `${uid} ${conversation}`
}
