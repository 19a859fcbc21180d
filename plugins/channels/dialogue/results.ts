/**
 * Runs that no message started, though they are part of a chat's conversation: they bring the result of a sub-agent that
 * nobody waited for. What they answer is said in the chat too.
 */
import { isFault } from '../../../core/errors.ts'
import type { Context } from '../../../core/plugin.ts'
import type { RunRecord } from '../../runs/contract.ts'
import type { Followed, FollowedRuns } from './followed.ts'
import { keys } from './records.ts'
import type { Reply, Talk } from './records.ts'

/** `followed`: looks at a run that may have ended meanwhile. */
export function followResults(ctx: Context, runs: FollowedRuns, followed: (run: Followed) => Promise<unknown>): void {
	const owe = async (run: RunRecord): Promise<void> => {
		const { run_id, agent, agent_uid, conversation } = run
		const talk = await ctx.store.get<Talk>(keys.talk(agent_uid, conversation))
		if (!talk) return
		const { channel_id, chat, reply_to } = talk.value
		const reply: Reply = {
			run_id,
			agent,
			agent_uid,
			conversation,
			channel_id,
			chat,
			reply_to,
			asked: [],
			said: null,
			saying: null,
			preview: null,
		}
		try {
			await ctx.store.create(keys.reply(agent_uid, channel_id, run_id), reply)
		} catch (error) {
			if (!isFault(error, 'conflict')) throw error
		}
		await followed(await runs.follow(reply))
	}
	const follow = async (run_id: string | null): Promise<void> => {
		if (run_id === null || runs.get(run_id)) return
		const run = await ctx.use('runs').find(run_id)
		if (run?.parent && run.conversation.startsWith('channel:')) await owe(run)
	}
	ctx.on('run.started', ({ run_id, payload }) => {
		if (payload.parent_run_id !== undefined && String(payload.conversation).startsWith('channel:'))
			return follow(run_id)
	})
	// The gateway may have crashed before the pending answer was stored.
	ctx.on('run.resumed', ({ run_id, payload }) => {
		if (payload.reason === 'restart') return follow(run_id)
	})
}
