/** Chats as targets of results and of messages that callers send. */
import type { AgentRef } from '../../../core/plugin.ts'
import type { Op } from '../../../core/store/ports.ts'
import type { Destination } from '../../runs/contract.ts'
import type { BoundChat } from '../parts.ts'
import type { DialogueDeps } from './deps.ts'
import { keys, newReply } from './records.ts'
import type { ConversationChat, Reply } from './records.ts'

export type ChatPlace = Pick<Reply, 'channel_id' | 'chat'>

/** Limit of pending messages and answers of one channel, including the runs that work on them. */
export const PENDING_LIMIT = 5_000

/** Undefined for `none`. */
export async function placeOf(
	{ marks, registry }: DialogueDeps,
	{ deliver, origin }: Destination,
): Promise<ChatPlace | undefined> {
	if (deliver === 'origin') return origin as unknown as ChatPlace | undefined
	if (deliver === 'none') return undefined
	const { channel, chat } = deliver
	return placeIn(marks, (await registry.named(channel)) ?? channel, chat)
}

/** The chat of a conversation of this agent, or of a binding whose chat has no messages yet. */
export async function placeOfConversation(
	deps: DialogueDeps,
	agent: AgentRef,
	conversation: string,
): Promise<ChatPlace | undefined> {
	const talk = await deps.ctx.store.get<ConversationChat>(keys.talk(agent.uid, conversation))
	if (talk) return { channel_id: talk.value.channel_id, chat: talk.value.chat }
	const [, binding_id] = /^channel:([0-9a-f-]{36})$/.exec(conversation) ?? []
	const found = binding_id === undefined ? undefined : await deps.registry.chatOf(binding_id)
	if (!found) return undefined
	const place = await placeIn(deps.marks, found.channel_id, found.chat_id)
	// The caller must not learn whether another agent has such a chat.
	return (await boundTo(deps, agent, place)) && place
}

/** The binding of the chat, if the chat is bound to this agent. */
export async function boundTo(
	{ registry, marks }: DialogueDeps,
	{ uid }: Pick<AgentRef, 'uid'>,
	{ channel_id, chat }: ChatPlace,
): Promise<BoundChat | undefined> {
	const bound = await registry.bound(channel_id, [chat.id, ...(await marks.within(channel_id, chat.id))])
	return bound?.agent.uid === uid ? bound : undefined
}

export function hasRoom({ runs }: DialogueDeps, { channel_id }: ChatPlace): boolean {
	return runs.count(channel_id) < PENDING_LIMIT
}

/** The op that stores the pending delivery of a run's answer, or of a message. `conversation`: the chat's current one. */
export function pendingOp(
	{ name, uid }: AgentRef,
	{ channel_id, chat }: ChatPlace,
	run_id: string,
	conversation: string,
): Op {
	const value = newReply({ run_id, agent: name, agent_uid: uid, conversation, channel_id, chat, unasked: true })
	return { key: keys.reply(uid, channel_id, run_id), value, expect: null }
}

async function placeIn(marks: DialogueDeps['marks'], channel_id: string, chat_id: string): Promise<ChatPlace> {
	return { channel_id, chat: { id: chat_id, kind: await marks.kindOf(channel_id, chat_id) } }
}
