/** An ended run as messages: what its model said, the calls it made with their results, and how it ended. */
import type { ChatMessage } from '../../core/protocol.ts'
import type { Context } from '../../core/plugin.ts'
import type { Journal } from './run-log.ts'
import { AgedMap } from '../../core/util/aged-map.ts'
import { charactersOf } from '../../core/runs/kept-histories.ts'
import { resultId } from './results.ts'
import type { RunInputs, RunRecord } from './contract.ts'
import { keys } from './keys.ts'
import { messagesIn } from './journal.ts'
import { isEnded } from './run-state.ts'

/** Characters of all transcripts in memory together. */
const CACHE_CHARACTERS = 16 * 1024 * 1024

interface KeptTranscript {
	messages: readonly ChatMessage[]
	characters: number
	/** Since it was considered for removal last: a mark costs less than moving the entry, and a long conversation reads many. */
	isUsed: boolean
}

/** By run; an ended run no longer changes. */
const transcripts = new AgedMap<string, KeptTranscript>()
let cached = 0

/**
 * The messages of a turn, the prompt first. `keeps`: it is likely to be read again soon. Every call has a result. A turn without an answer ends with a remark in its
 * place, since models expect one. Of a run whose journal was removed (`events.retention_days`), prompt and answer are left.
 */
export async function transcriptOf(
	{ events, store }: Pick<Context, 'events' | 'store'>,
	run: RunRecord,
	keeps = true,
): Promise<readonly ChatMessage[]> {
	const known = knownTranscript(run.run_id)
	if (known) return known
	const [journal, given] = await Promise.all([
		events.journal(run.run_id),
		run.goes_on ? store.get<RunInputs>(keys.given(run.agent_uid, run.run_id)) : undefined,
	])
	const messages = messagesOfTurn(run, journal as Journal, given?.value.since ?? [])
	if (keeps && isEnded(run.status)) keep(run.run_id, messages)
	return messages
}

/** The messages of a run that were read not long ago. */
export function knownTranscript(run_id: string): readonly ChatMessage[] | undefined {
	const known = transcripts.get(run_id)
	if (known) known.isUsed = true
	return known?.messages
}

/** Removes a deleted run's text from memory. */
export function forgetTranscript(run_id: string): void {
	cached -= transcripts.get(run_id)?.characters ?? 0
	transcripts.delete(run_id)
}

function keep(run_id: string, messages: readonly ChatMessage[]): void {
	const characters = messages.reduce((sum, message) => sum + charactersOf(message), 0)
	forgetTranscript(run_id)
	transcripts.set(run_id, { messages, characters, isUsed: false })
	cached += characters
	while (cached > CACHE_CHARACTERS) {
		const oldest = transcripts.takeOldest()
		if (!oldest) return
		const [id, kept] = oldest
		// It gets a second chance, behind the others.
		if (kept.isUsed) transcripts.set(id, { ...kept, isUsed: false })
		else cached -= kept.characters
	}
}

/** `since`: what was said after the prompt before the run began. */
function messagesOfTurn(run: RunRecord, journal: Journal, since: readonly ChatMessage[]): ChatMessage[] {
	const { run_id, prompt, attachments, answer } = run
	const before = since.map((message) => withOwnIds(message, run_id, false))
	const done = withResults(messagesIn(journal)).map((message) => withOwnIds(message, run_id))
	const messages: ChatMessage[] = [
		{ role: 'user', content: prompt, ...(attachments && { attachments }), run_id },
		...before,
		...done,
	]
	const last = done.at(-1)
	if (last?.role === 'assistant' && (last.tool_calls ?? []).length === 0) return messages
	// The journal is gone, or the run ended without an answer of the model's.
	messages.push({ role: 'assistant', content: answer ?? remarkOn(run), tool_calls: [] })
	return messages
}

function remarkOn({ status, error }: RunRecord): string {
	if (status === 'failed') return `[This turn ended without an answer: ${error?.message ?? 'it failed'}]`
	if (status === 'stopped') return '[This turn was stopped before there was an answer.]'
	return '[This turn has no answer yet.]'
}

/** A call that was cut off has no result in the journal. */
function withResults(messages: ChatMessage[]): ChatMessage[] {
	const complete: ChatMessage[] = []
	let open: { id: string; name: string }[] = []
	const close = (): void => {
		for (const { id, name } of open) {
			complete.push({
				role: 'tool',
				call_id: id,
				name,
				ok: false,
				content: '[the turn ended before there was a result]',
			})
		}
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

/** Some servers number their calls anew in each answer; in a conversation, every id must be unique. */
const COUNTED = /^[a-z_.:-]*\d{1,4}(?:_\d{1,4})?$/i

function withOwnIds(message: ChatMessage, run_id: string, isOwn = true): ChatMessage {
	const own = (id: string): string => (COUNTED.test(id) ? `${id}_${run_id.slice(-8)}` : id)
	if (message.role === 'tool') {
		const call_id = own(message.call_id)
		return isOwn
			? { ...message, call_id, result_id: resultId({ run_id, call_id: message.call_id }) }
			: { ...message, call_id }
	}
	if (message.role !== 'assistant') return message
	return { ...message, tool_calls: (message.tool_calls ?? []).map((call) => ({ ...call, id: own(call.id) })) }
}
