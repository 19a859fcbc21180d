/** What results and messages that nobody in the chat asked for need besides being sent. */
import type { AgentRef, Context } from '../../../core/plugin.ts'
import type { RunRecord } from '../../runs/contract.ts'
import type { BoundChat } from '../parts.ts'
import type { PlaceDeps } from './place.ts'
import { keys } from './records.ts'
import type { Reply } from './records.ts'
import { Gone } from './reply.ts'
import { texts } from './texts.ts'

/** Newest runs of an agent among which the previous ones of a conversation are looked for. */
const SEARCHED_RUNS = 100
const DATE_LENGTH = '2030-01-31'.length

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

/**
 * Whether an earlier run of its conversation failed for the same reason on the same day (UTC), and none has completed since. While
 * its model cannot be reached, a heartbeat fails with each beat, not always with the same error as the beat before.
 */
export async function isRepeatedFailure({ use }: Pick<Context, 'use'>, run: RunRecord): Promise<boolean> {
	const agent = { name: run.agent, uid: run.agent_uid }
	const before = await use('runs').list(agent, { limit: SEARCHED_RUNS, before: run.run_id })
	const previous = before.filter(({ conversation }) => conversation === run.conversation)
	const end = previous.findIndex(({ status }) => status === 'completed')
	return previous
		.slice(0, end < 0 ? previous.length : end)
		.some(
			({ status, error, created_at }) =>
				status === 'failed' &&
				error?.code === run.error?.code &&
				created_at.slice(0, DATE_LENGTH) === run.created_at.slice(0, DATE_LENGTH),
		)
}

/** It reached nobody: takes it out of the chat's conversation. May be repeated. */
export async function withdraw({ use }: Pick<Context, 'use'>, reply: Reply): Promise<void> {
	await use('runs').unsay(agentOf(reply), reply.noted ?? reply.run_id)
}

function agentOf({ agent, agent_uid }: Reply): AgentRef {
	return { name: agent, uid: agent_uid }
}
