/** The earlier turns of a conversation, read newest first, so that the work does not grow with what is not read. */
import type { Context } from '../../core/plugin.ts'
import type { ChatMessage } from '../../core/protocol.ts'
import type { RunRecord } from './contract.ts'
import { newestFirst } from './conversation.ts'
import { sizeOfMessages, transcriptOf } from './transcript.ts'

/** Limit of the earlier turns that a model gets. */
const CONTEXT_CHARACTERS = 200_000

/** Oldest first, each turn complete. A turn that never began is left out. */
export async function historyOf(
	{ store, events }: Pick<Context, 'store' | 'events'>,
	run: RunRecord,
): Promise<ChatMessage[]> {
	const turns: (readonly ChatMessage[])[] = []
	let characters = 0
	for await (const earlier of newestFirst(store, { uid: run.agent_uid }, run.conversation, run.run_id)) {
		// A run that ended with calls of its caller's tools goes on in another run, which has the same prompt.
		if (earlier.started_at === null || earlier.tool_calls) continue
		const messages = await transcriptOf(events, earlier)
		characters += sizeOfMessages(messages)
		if (characters > CONTEXT_CHARACTERS) break
		turns.push(messages)
	}
	return turns.toReversed().flat()
}
