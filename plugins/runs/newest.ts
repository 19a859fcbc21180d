/** The ids of the runs of all agents, newest first. */
import type { Context } from '../../core/plugin.ts'
import type { RunStatus } from './contract.ts'
import { keys } from './keys.ts'
import type { ConversationQueue, IndexEntry } from './keys.ts'
import { isEnded } from './run-state.ts'

/**
 * All runs, or those that may have `status`, with ids below `cursor`. Unfinished runs are read from the conversation queues,
 * since among all runs they may be few and far apart.
 */
export async function* newestRuns(
	{ store, use }: Pick<Context, 'store' | 'use'>,
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
