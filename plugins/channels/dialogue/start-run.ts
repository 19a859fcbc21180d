/** Starts the run of a message. */
import type { AgentRef } from '../../../core/plugin.ts'
import type { Attachment } from '../../../core/protocol.ts'
import type { Op } from '../../../core/store/ports.ts'
import { now } from '../../../core/util/ids.ts'
import type { DialogueDeps } from './deps.ts'
import { keys, newReply } from './records.ts'
import type { PendingMessage, Reply, ConversationChat } from './records.ts'

export interface RunStart extends Pick<PendingMessage, 'conversation' | 'channel_id' | 'chat' | 'message_id'> {
	agent: AgentRef
	/** Earlier messages that share the run. */
	merged?: string[]
	prompt: string
	attachments: Attachment[]
	place: string
	trigger: string
	/** Further ops of the commit, in the agent's scope. Called again after a conflict. If it throws, the run is not started. */
	also(): Promise<Op[]>
}

/** Commits the run, the pending answer and `also` together. Throws what `Runs.start` throws. */
export async function startRun(
	{ ctx, runs }: Pick<DialogueDeps, 'ctx' | 'runs'>,
	{ agent, channel_id, chat, message_id, merged = [], conversation, also, ...start }: RunStart,
): Promise<void> {
	const writesOf = async (run_id: string, follow: (reply: Reply) => void): Promise<Op[]> => {
		const ops = await also()
		const reply = newReply({
			run_id,
			agent: agent.name,
			agent_uid: agent.uid,
			conversation,
			channel_id,
			chat,
			reply_to: message_id,
			...(merged.length > 0 && { merged }),
		})
		follow(reply)
		const talk = { channel_id, chat, at: now() } satisfies ConversationChat
		return [
			{ key: keys.reply(agent.uid, channel_id, run_id), value: reply, expect: null },
			{ key: keys.talk(agent.uid, conversation), value: talk },
			...ops,
		]
	}
	await runs.start((listener, follow) =>
		ctx.use('runs').converse(agent, { ...start, conversation, also: (run_id) => writesOf(run_id, follow) }, listener),
	)
}
