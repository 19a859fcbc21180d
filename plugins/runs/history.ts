/** The earlier turns of a conversation, read newest first, so that the cost depends only on the turns that are read. */
import type { Context } from '../../core/plugin.ts'
import type { ChatMessage } from '../../core/protocol.ts'
import type { ContextMarks } from '../../sandbox/order.ts'
import { lineOf } from '../../sandbox/context/earlier.ts'
import { tokensOf } from '../../sandbox/context/message-tokens.ts'
import type { RunRecord } from './contract.ts'
import { keys } from './keys.ts'
import { knownTurns } from './known-turns.ts'
import type { TurnRead } from './known-turns.ts'
import { isEnded } from './run-state.ts'
import { transcriptOf } from './transcript.ts'

/** Maximum length of `unread`. */
const UNREAD = 30
/** Maximum tokens of a tool result, and of another message, in a turn that is shown as stubs. */
const STUB = { result: 80, text: 600 }

/**
 * Reads the turns from `from` on, newest first, until they exceed `tokens`; those before `whole` count as stubs. Turns that never
 * began are omitted. `unread`: the beginnings of the newest turns that were not read. Both lists are returned oldest first.
 */
export async function historyOf(
	ctx: Pick<Context, 'store' | 'events'>,
	{ agent_uid, conversation, run_id = '~' }: Pick<RunRecord, 'agent_uid' | 'conversation'> & { run_id?: string },
	{ from, whole, tokens }: Pick<ContextMarks, 'from' | 'whole'> & { tokens: number },
) {
	const known = knownTurns(ctx.store, agent_uid, conversation)
	const turns: (readonly ChatMessage[])[] = []
	const unread: ContextMarks['omitted'] = []
	let used = 0
	// A comparison of ids takes longer than the rest of an iteration, and all turns before an earlier one are earlier.
	let isEarlier = false
	let turn = await known.newest()
	for (; turn; turn = turn.before === undefined ? await known.list(turn) : turn.before) {
		if (from !== null && turn.run_id < from) break
		if (!isEarlier && turn.run_id >= run_id) continue
		isEarlier = true
		let { read } = turn
		if (!read || used > tokens) {
			const earlier = (await ctx.store.get<RunRecord>(keys.run(agent_uid, turn.run_id)))?.value
			if (used > tokens) {
				if (!earlier || isOmitted(earlier)) continue
				if (unread.push({ run_id: turn.run_id, line: lineOf(earlier.prompt) }) === UNREAD) break
				continue
			}
			if (!earlier) continue
			read = await readTurn(ctx, earlier)
			if (isEnded(earlier.status)) known.keep(turn, read)
		}
		if (read.messages.length > 0) turns.push(read.messages)
		used += whole !== null && turn.run_id < whole ? read.stubTokens : read.tokens
		if (turn.run_id === from) {
			known.forgetBefore(turn)
			break
		}
	}
	const messages: ChatMessage[] = []
	for (const one of turns.toReversed()) messages.push(...one)
	return { messages, unread: unread.toReversed() }
}

/** A turn that never began, or that ended with calls of its caller's tools: the run that continues it has the same prompt. */
function isOmitted({ started_at, tool_calls }: RunRecord): boolean {
	return started_at === null || tool_calls !== undefined
}

async function readTurn(ctx: Pick<Context, 'store' | 'events'>, run: RunRecord): Promise<TurnRead> {
	const messages = isOmitted(run) ? [] : await transcriptOf(ctx, run)
	let tokens = 0
	let stubTokens = 0
	for (const message of messages) {
		const most = message.role === 'tool' ? STUB.result : STUB.text
		tokens += tokensOf(message)
		stubTokens += Math.min(tokensOf(message), most)
	}
	return { messages, tokens, stubTokens }
}
