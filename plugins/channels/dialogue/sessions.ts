/** The current conversation of each chat. `/new` begins another one in that chat only, even if the binding has more chats. */
import { BoundedMap } from '../../../core/util/bounded-map.ts'
import { newId, now } from '../../../core/util/ids.ts'
import type { AgentRef, Context } from '../../../core/plugin.ts'
import { agentScope } from '../../../core/store/agent-scope.ts'
import type { Op } from '../../../core/store/ports.ts'
import type { ChatRef } from '../adapter.ts'
import type { BoundChat } from '../parts.ts'
import { conversationOf, keys } from './records.ts'
import type { Session } from './records.ts'

export type ChatSessions = ReturnType<typeof openSessions>

/** Cached sessions. */
const CACHE_LIMIT = 5_000

export function openSessions({ store, use, signal }: Pick<Context, 'store' | 'use' | 'signal'>) {
	/** Ids of sessions; null for a chat that is still in its first conversation. */
	const cache = new BoundedMap<string, string | null>(CACHE_LIMIT)
	const nameOf = ({ uid }: AgentRef, first: string): string => `${uid} ${first}`

	return {
		/** The current conversation of a chat. */
		async current(channel_id: string, { agent, ...bound }: BoundChat, chat: ChatRef): Promise<string> {
			const first = conversationOf(bound, chat)
			const name = nameOf(agent, first)
			let session = cache.get(name)
			if (session === undefined) {
				const entry = await store.get<Session>(keys.session(agent.uid, channel_id, first))
				cache.set(name, (session = entry?.value.session ?? null))
			}
			return conversationOf(bound, chat, session)
		},
		/** Begins another conversation. Commits it together with `also`, ops in the agent's scope. */
		async begin(channel_id: string, { agent, ...bound }: BoundChat, chat: ChatRef, also: Op[]): Promise<void> {
			const first = conversationOf(bound, chat)
			const old = await store.get<Session>(keys.session(agent.uid, channel_id, first))
			const value: Session = { session: newId(), first, at: now() }
			await store.commit(agentScope(agent.uid), [{ key: keys.session(agent.uid, channel_id, first), value }, ...also])
			cache.set(nameOf(agent, first), value.session)
			await use('runs').forgetNotes(agent, conversationOf(bound, chat, old?.value.session ?? null))
		},
		/** Deletes sessions that began before `before` (ISO 8601), once no conversation of the chat has runs any more. */
		async prune(before: string): Promise<void> {
			for await (const { name, uid } of use('agents').list()) {
				const isEmpty = async (conversation: string): Promise<boolean> =>
					(await use('runs').history({ name, uid }, conversation, 1)).length === 0
				for await (const { key, value, rev } of store.list<Session>(keys.sessions(uid))) {
					if (signal.aborted) return
					const { first, session, at } = value
					// As long as the first conversation exists, the chat must not return to it.
					if (at >= before || !(await isEmpty(first)) || !(await isEmpty(`${first}:${session}`))) continue
					await store.commit(agentScope(uid), [{ key, value: undefined, expect: rev }])
					cache.delete(nameOf({ name, uid }, first))
				}
			}
		},
	}
}
