/** The earlier turns of a conversation, read newest first, so that the work does not grow with what is not read. */
import type { Context } from '../../core/plugin.ts'
import type { ChatMessage } from '../../core/protocol.ts'
import { tokensOf } from '../../sandbox/context/message-tokens.ts'
import type { RunRecord } from './contract.ts'
import { newestFirst } from './conversation.ts'
import { transcriptOf } from './transcript.ts'

/**
 * Oldest first, each turn complete; those of `from` and later, and no more than it takes to exceed `tokens`. A turn that
 * never began is left out.
 */
export async function historyOf(
	{ store, events }: Pick<Context, 'store' | 'events'>,
	{ agent_uid, conversation, run_id }: Pick<RunRecord, 'agent_uid' | 'conversation'> & { run_id?: string },
	{ from, tokens }: { from: string | null; tokens: number },
): Promise<ChatMessage[]> {
	const turns: (readonly ChatMessage[])[] = []
	let used = 0
	for await (const earlier of newestFirst(store, { uid: agent_uid }, conversation, run_id)) {
		if (from !== null && earlier.run_id < from) break
		// A run that ended with calls of its caller's tools goes on in another run, which has the same prompt.
		if (earlier.started_at === null || earlier.tool_calls) continue
		const messages = await transcriptOf(events, earlier)
		turns.push(messages)
		for (const message of messages) used += tokensOf(message)
		if (used > tokens) break
	}
	return turns.toReversed().flat()
}
