/** Which conversations are being summarized. Not part of a plugin instance, as runs are not. */

const underWay = new Map<string, Promise<unknown>>()

export function isUnderWay(uid: string, conversation: string): boolean {
	return underWay.has(keyOf(uid, conversation))
}

/** Does `work`, and tells others of it until it settles. */
export function begin<T>(uid: string, conversation: string, work: () => Promise<T>): Promise<T> {
	const key = keyOf(uid, conversation)
	const done = work().finally(() => {
		if (underWay.get(key) === done) underWay.delete(key)
	})
	underWay.set(key, done)
	return done
}

/** Settles once the summary is there, or has failed, or after `ms`. False if none was being made. */
export async function awaitSummary(uid: string, conversation: string, ms: number): Promise<boolean> {
	const done = underWay.get(keyOf(uid, conversation))
	if (!done) return false
	const late = Promise.withResolvers<void>()
	const timer = setTimeout(late.resolve, ms)
	await Promise.race([done.catch(() => {}), late.promise])
	clearTimeout(timer)
	return true
}

function keyOf(uid: string, conversation: string): string {
	return `${uid} ${conversation}`
}
