import type { Context } from '../../core/plugin.ts'
import type { RunRecord } from './contract.ts'
import { keys } from './keys.ts'
import type { ConversationQueue } from './keys.ts'

/**
 * Unfinished runs in other conversations that runs of this conversation started, directly or through other runs, oldest first.
 * The runs in between may have ended.
 */
export async function startedIn(
	{ store }: Pick<Context, 'store'>,
	uid: string,
	conversation: string,
): Promise<string[]> {
	const find = async (run_id: string): Promise<RunRecord | undefined> =>
		(await store.get<RunRecord>(keys.run(uid, run_id)))?.value
	const isBelow = async (run_id: string): Promise<boolean> => {
		for (let run = await find(run_id); run?.parent;) {
			run = await find(run.parent.run_id)
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
