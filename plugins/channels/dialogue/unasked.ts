/** What results and messages that nobody in the chat asked for need besides being sent. */
import type { AgentRef, Context } from '../../../core/plugin.ts'
import { boundTo } from './place.ts'
import type { PlaceRooms } from './place.ts'
import { keys } from './records.ts'
import type { Reply } from './records.ts'
import { Gone } from './reply.ts'
import { tellUndelivered } from './report.ts'
import { texts } from './texts.ts'

interface UnaskedRooms {
	ctx: Context
	rooms: PlaceRooms
}

/** Bindings may have changed while the run executed, or its channel was not connected. */
export async function mayBeSent({ ctx, rooms }: UnaskedRooms, reply: Reply): Promise<boolean> {
	if (await boundTo(rooms, { uid: reply.agent_uid }, reply)) return true
	await tellUndelivered(ctx, reply, 'unbound', 'the chat is not bound to the agent any more')
	return false
}

/** Once: makes the result of another conversation a part of the chat's, before anybody there can answer it. Changes the stored reply. */
export async function note({ ctx, rooms }: UnaskedRooms, reply: Reply, content: string): Promise<void> {
	const { agent_uid, channel_id, chat, run_id, noted: earlier } = reply
	if (earlier !== undefined) return
	const run = await ctx.use('runs').find(run_id)
	const bound = await boundTo(rooms, { uid: agent_uid }, reply)
	if (!run || !bound) return
	const conversation = await rooms.sessions.current(channel_id, bound, chat)
	if (run.said || run.conversation === conversation) return
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
export async function withdraw({ ctx }: Pick<UnaskedRooms, 'ctx'>, reply: Reply): Promise<void> {
	await ctx.use('runs').unsay(agentOf(reply), reply.noted ?? reply.run_id)
}

function agentOf({ agent, agent_uid }: Reply): AgentRef {
	return { name: agent, uid: agent_uid }
}
