/** What results and messages that nobody in the chat asked for need besides being sent. */
import type { AgentRef, Context } from '../../../core/plugin.ts'
import type { BoundChat } from '../parts.ts'
import type { PlaceDeps } from './place.ts'
import { keys } from './records.ts'
import type { Reply } from './records.ts'
import { Gone } from './reply.ts'
import { texts } from './texts.ts'

/** Once: makes the result of another conversation a part of the chat's, before anybody there can answer it. Changes the stored reply. */
export async function note(
	{ ctx, sessions }: Pick<PlaceDeps, 'ctx' | 'sessions'>,
	bound: BoundChat,
	reply: Reply,
	content: string,
): Promise<void> {
	const { agent_uid, channel_id, chat, run_id } = reply
	if (reply.noted !== undefined) return
	const run = await ctx.use('runs').find(run_id)
	const conversation = await sessions.current(channel_id, bound, chat)
	if (!run || run.said || run.conversation === conversation) return
	const key = keys.reply(agent_uid, channel_id, run_id)
	await ctx.use('runs').say(agentOf(reply), {
		conversation,
		content,
		about: texts.aboutResult(run),
		also: async (noted) => {
			const entry = await ctx.store.get<Reply>(key)
			if (!entry || entry.value.noted !== undefined) throw new Gone('another call was first')
			return [{ key, value: { ...entry.value, noted } satisfies Reply, expect: entry.rev }]
		},
	})
}

/** It reached nobody: takes it out of the chat's conversation. May be repeated. */
export async function withdraw({ use }: Pick<Context, 'use'>, reply: Reply): Promise<void> {
	await use('runs').unsay(agentOf(reply), reply.noted ?? reply.run_id)
}

function agentOf({ agent, agent_uid }: Reply): AgentRef {
	return { name: agent, uid: agent_uid }
}
