import type { Context } from '../../core/plugin.ts'
import { keys } from './keys.ts'
import type { ConversationQueue } from './keys.ts'
import { readRun } from './records.ts'

/**
 * Unfinished runs in other conversations that runs of this conversation started, directly or through other runs, oldest first.
 * The runs in between may have ended.
 */
export async function startedIn(
	{ store }: Pick<Context, 'store'>,
	uid: string,
	conversation: string,
): Promise<string[]> {
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
