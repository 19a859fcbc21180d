/** The current conversation of each chat. `/new` begins another one in that chat only, even if the binding has more chats. */
import { newId, now } from '../../../core/util/ids.ts'
import type { Context } from '../../../core/plugin.ts'
import { agentScope } from '../../../core/store/agent-scope.ts'
import type { Op } from '../../../core/store/ports.ts'
import type { ChatRef } from '../adapter.ts'
import type { BoundChat } from '../parts.ts'
import { conversationOf, keys } from './records.ts'
import type { Session } from './records.ts'

export type ChatSessions = ReturnType<typeof openSessions>

export function openSessions({ store, use, signal }: Pick<Context, 'store' | 'use' | 'signal'>) {
	return {
		/** The current conversation of a chat. */
		async current(channel_id: string, { agent, ...bound }: BoundChat, chat: ChatRef): Promise<string> {
			const entry = await store.get<Session>(keys.session(agent.uid, channel_id, conversationOf(bound, chat)))
			return conversationOf(bound, chat, entry?.value.session ?? null)
		},
		/** Begins another conversation. Commits it together with `also`, ops in the agent's scope. */
		async begin(channel_id: string, { agent, ...bound }: BoundChat, chat: ChatRef, also: Op[]): Promise<void> {
			const first = conversationOf(bound, chat)
			const old = await store.get<Session>(keys.session(agent.uid, channel_id, first))
			const value: Session = { session: newId(), first, at: now() }
			await store.commit(agentScope(agent.uid), [{ key: keys.session(agent.uid, channel_id, first), value }, ...also])
			await use('runs').forgetNotes(agent, conversationOf(bound, chat, old?.value.session ?? null))
		},
		/** Deletes sessions that began before `before` (ISO 8601), once no conversation of the chat has runs any more. */
		async prune(before: string): Promise<void> {
			for await (const { name, uid } of use('agents').list()) {
				const isEmpty = async (conversation: string): Promise<boolean> =>
					(await use('runs').history({ name, uid }, conversation, 1)).length === 0
				for await (const { key, value, rev } of store.list<Session>(keys.all(uid, 'session'))) {
					if (signal.aborted) return
					const { first, session, at } = value
					// As long as the first conversation exists, the chat must not return to it.
					if (at >= before || !(await isEmpty(first)) || !(await isEmpty(`${first}:${session}`))) continue
					await store.commit(agentScope(uid), [{ key, value: undefined, expect: rev }])
				}
			}
		},
	}
}
