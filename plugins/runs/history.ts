/** The earlier turns of a conversation, read newest first, so that the work does not grow with what is not read. */
import type { Context } from '../../core/plugin.ts'
import type { ChatMessage } from '../../core/protocol.ts'
import type { ContextMarks } from '../../sandbox/order.ts'
import { lineOf } from '../../sandbox/context/earlier.ts'
import { tokensOf } from '../../sandbox/context/message-tokens.ts'
import type { RunRecord } from './contract.ts'
import { newestTurns, runOf } from './conversation.ts'
import { keys } from './keys.ts'
import { knownTranscript, transcriptOf } from './transcript.ts'

export interface History {
	/** Oldest first, each turn complete. */
	messages: ChatMessage[]
	/** How the newest of the turns before these begin, oldest first; empty if all turns were read. */
	unread: ContextMarks['omitted']
}

/** Of `unread`. */
const UNREAD = 30
/** Tokens of a result, and of another message, in a turn that is shown as stubs. */
const STUB = { result: 80, text: 600 }

/**
 * The turns of `from` and later, and no more than it takes to exceed `tokens`; those before `whole` count as stubs. A turn that
 * never began is left out.
 */
export async function historyOf(
	{ store, events }: Pick<Context, 'store' | 'events'>,
	{ agent_uid, conversation, run_id }: Pick<RunRecord, 'agent_uid' | 'conversation'> & { run_id?: string },
	{ from, whole, tokens }: Pick<ContextMarks, 'from' | 'whole'> & { tokens: number },
): Promise<History> {
	const turns: (readonly ChatMessage[])[] = []
	const unread: ContextMarks['omitted'] = []
	let used = 0
	for await (const key of newestTurns(store, { uid: agent_uid }, conversation, run_id)) {
		const id = runOf(key)
		if (from !== null && id < from) break
		let messages = used > tokens ? undefined : knownTranscript(id)
		if (!messages) {
			const earlier = (await store.get<RunRecord>(keys.run(agent_uid, id)))?.value
			// A run that ended with calls of its caller's tools continues in another run, which has the same prompt.
			if (!earlier || earlier.started_at === null || earlier.tool_calls) continue
			if (used > tokens) {
				if (unread.push({ run_id: id, line: lineOf(earlier.prompt) }) === UNREAD) break
				continue
			}
			messages = await transcriptOf({ store, events }, earlier)
		}
		turns.push(messages)
		const isStub = whole !== null && id < whole
		for (const message of messages) {
			const most = !isStub ? Infinity : message.role === 'tool' ? STUB.result : STUB.text
			used += Math.min(tokensOf(message), most)
		}
	}
	return { messages: turns.toReversed().flat(), unread: unread.toReversed() }
}
