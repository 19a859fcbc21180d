/** The lifetime of short-term notes: as long as their conversation, or until the agent is reset. */
import { timeOfId } from '../../core/util/ids.ts'
import type { AgentRef } from '../../core/plugin.ts'
import { deleteAll } from '../shared/delete-all.ts'
import type { Store } from '../../core/store/ports.ts'
import type { RunRecord } from './contract.ts'
import { currentSession } from './conversation.ts'
import { keys } from './keys.ts'
import { hasOpenChild } from './records.ts'

/** A run from these sources has its own conversation, which ends with it. */
const ownConversation: readonly string[] = ['webhook', 'subagent', 'compaction', 'summary', 'sampling']

/** Deletes the notes of all conversations of the agent. */
export function forgetAllNotes(store: Store, uid: string): Promise<void> {
	return deleteAll(store, keys.allShortTerm(uid))
}

/** Deletes the notes of conversations that have ended: earlier sessions, those of a single run, and those without any run. */
export async function forgetEndedNotes(store: Store, agent: Pick<AgentRef, 'uid' | 'name'>): Promise<void> {
	const { uid } = agent
	const session = await currentSession(store, agent)
	await deleteAll(store, keys.allShortTerm(uid), async ({ key: noted }) => {
		const conversation = noted.at(-1) ?? ''
		if (conversation === session || (await store.get(keys.queue(uid, conversation)))) return false
		const isSession = conversation === uid || timeOfId(conversation) !== undefined
		for await (const key of store.keys(keys.turns(uid, conversation), { limit: 1 })) {
			const first = (await store.get<RunRecord>(keys.run(uid, key.at(-1) ?? '')))?.value
			if (!first || isSession) return true
			return ownConversation.includes(first.trigger) && !(await hasOpenChild(store, first))
		}
		return true
	})
}
