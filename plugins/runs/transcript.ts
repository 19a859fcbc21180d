/** Converts an ended run to messages: its prompt, its model's text and calls, their results, and how it ended. */
import type { ChatMessage } from '../../core/protocol.ts'
import type { Context } from '../../core/plugin.ts'
import type { Journal } from './run-log.ts'
import { resultId } from './results.ts'
import type { RunInputs, RunRecord } from './contract.ts'
import { keys } from './keys.ts'
import { messagesIn } from './journal.ts'

/**
 * The messages of a turn, the prompt first. Every call has a result, and a turn without an answer ends with a remark in its
 * place, since models require both. If the run's journal was removed (`events.retention_days`), only prompt and answer remain.
 */
export async function transcriptOf(
	{ events, store }: Pick<Context, 'events' | 'store'>,
	run: RunRecord,
): Promise<readonly ChatMessage[]> {
	const { run_id, prompt, attachments, answer } = run
	const [journal, given] = await Promise.all([
		events.journal(run_id),
		run.goes_on ? store.get<RunInputs>(keys.given(run.agent_uid, run_id)) : undefined,
	])
	// The messages between the prompt and the beginning of the run.
	const before = (given?.value.since ?? []).map((message) => withOwnIds(message, run_id, false))
	const done = withResults(messagesIn(journal as Journal)).map((message) => withOwnIds(message, run_id))
	const messages: ChatMessage[] = [
		{ role: 'user', content: prompt, ...(attachments && { attachments }), run_id },
		...before,
		...done,
	]
	const last = done.at(-1)
	if (last?.role === 'assistant' && (last.tool_calls ?? []).length === 0) return messages
	// The journal was removed, or the run ended without an answer of its model.
	messages.push({ role: 'assistant', content: answer ?? remarkOn(run), tool_calls: [] })
	return messages
}

function remarkOn({ status, error }: RunRecord): string {
	if (status === 'failed') return `[This turn ended without an answer: ${error?.message ?? 'it failed'}]`
	if (status === 'stopped') return '[This turn was stopped before there was an answer.]'
	return '[This turn has no answer yet.]'
}

/** Adds results to calls that were interrupted, which have none in the journal. */
function withResults(messages: ChatMessage[]): ChatMessage[] {
	const content = '[the turn ended before there was a result]'
	const complete: ChatMessage[] = []
	let open: { id: string; name: string }[] = []
	const close = (): void => {
		for (const { id: call_id, name } of open) complete.push({ role: 'tool', call_id, name, ok: false, content })
		open = []
	}
	for (const message of messages) {
		if (message.role === 'tool') open = open.filter(({ id }) => id !== message.call_id)
		else close()
		complete.push(message)
		if (message.role === 'assistant') open = [...(message.tool_calls ?? [])]
	}
	close()
	return complete
}

/** Ids of servers that restart the numbers of calls in each answer. In a conversation, every id must be unique. */
const NUMBERED_ID = /^[a-z_.:-]*\d{1,4}(?:_\d{1,4})?$/i

function withOwnIds(message: ChatMessage, run_id: string, isOwn = true): ChatMessage {
	const own = (id: string): string => (NUMBERED_ID.test(id) ? `${id}_${run_id.slice(-8)}` : id)
	if (message.role === 'tool') {
		const call_id = own(message.call_id)
		return isOwn
			? { ...message, call_id, result_id: resultId({ run_id, call_id: message.call_id }) }
			: { ...message, call_id }
	}
	if (message.role !== 'assistant') return message
	return { ...message, tool_calls: (message.tool_calls ?? []).map((call) => ({ ...call, id: own(call.id) })) }
}
