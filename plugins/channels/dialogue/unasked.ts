/** Handles replies with `unasked`: results and messages that no message in the chat requested. */
import type { AgentRef, Context } from '../../../core/plugin.ts'
import type { RunRecord } from '../../runs/contract.ts'
import type { BoundChat } from '../parts.ts'
import type { DialogueDeps } from './deps.ts'
import { keys } from './records.ts'
import type { Reply } from './records.ts'
import { Gone } from './reply.ts'
import { texts } from './texts.ts'

/** Number of the agent's newest runs that are searched for earlier runs of a conversation. */
const SEARCHED_RUNS = 100
const DATE_LENGTH = '2030-01-31'.length

/** Adds the result of another conversation to the chat's, once, before anybody can answer it. Changes the stored reply. */
export async function addToConversation(
	{ ctx, sessions }: DialogueDeps,
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
			if (!entry || entry.value.noted !== undefined) throw new Gone('another call has added it')
			return [{ key, value: { ...entry.value, noted } satisfies Reply, expect: entry.rev }]
		},
	})
}

/**
 * Whether an earlier run of the conversation failed with the same error code on the same day (UTC), with no completed run since.
 * A heartbeat whose model cannot be reached fails with every beat, though not always with the same code twice in a row.
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

/** Removes an undelivered result or message from the chat's conversation. Idempotent. */
export async function removeFromConversation({ use }: Pick<Context, 'use'>, reply: Reply): Promise<void> {
	await use('runs').unsay(agentOf(reply), reply.noted ?? reply.run_id)
}

function agentOf({ agent, agent_uid }: Reply): AgentRef {
	return { name: agent, uid: agent_uid }
}
