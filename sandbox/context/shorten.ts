/** Shorter versions of messages, each of which states how to read the whole text. */
import { inWords } from '../attachments/words.ts'
import type { Turn } from '../models/provider.ts'

/** Up to this many characters, a result and other texts stay complete in a stub. */
const RESULT = 240
const TEXT = 2_000
/** If texts are limited to fewer characters, attachments are described in words: an image costs about as much. */
const SHOWN = 4_000

/** Where the whole text of a message is: for `conversation_read`. */
export interface ResultOrigin {
	run_id?: string | undefined
	result_id?: string | undefined
}

/** The stub of an old message: tool results and attachments become one line each, long texts keep their beginning and end. */
export function stubOf(shown: Turn, origin: ResultOrigin): Turn {
	const turn = inWords(shown)
	if (turn.role === 'tool') {
		if (turn.content.length <= RESULT) return turn
		const beginning = turn.content.slice(0, 80).toWellFormed().replaceAll(/\s+/g, ' ')
		return {
			...turn,
			content: `[result of ${turn.content.length} characters, omitted here; it begins: ${beginning}…; ${readBy(origin)}]`,
		}
	}
	// Providers need their state only in the current turn.
	if (turn.role === 'assistant' && turn.provider_state) {
		const { provider_state: _state, ...rest } = turn
		return abridged(rest, TEXT, origin)
	}
	return abridged(turn, TEXT, origin)
}

/** The message with at most about `limit` characters of text, and as many in the arguments of each call. */
export function abridged(shown: Turn, limit: number, origin: ResultOrigin): Turn {
	const turn = limit < SHOWN ? inWords(shown) : shown
	const content = cut(turn.content, limit, origin)
	if (turn.role !== 'assistant') return content === turn.content ? turn : { ...turn, content }
	const { provider_state: _state, ...rest } = turn
	const tool_calls = turn.tool_calls.map((call) =>
		call.arguments.length <= limit
			? call
			: { ...call, arguments: JSON.stringify({ left_out: `${call.arguments.length} characters` }) },
	)
	const isWhole = content === turn.content && tool_calls.every((call, at) => call === turn.tool_calls[at])
	return isWhole ? turn : { ...rest, content, tool_calls }
}

function cut(text: string, limit: number, origin: ResultOrigin): string {
	if (text.length <= limit) return text
	const head = Math.floor(limit * 0.75)
	const beginning = text.slice(0, head).toWellFormed()
	const end = text.slice(text.length - (limit - head)).toWellFormed()
	return `${beginning}\n[… ${text.length - limit} of ${text.length} characters are omitted here; ${readBy(origin)} …]\n${end}`
}

function readBy({ run_id, result_id }: ResultOrigin): string {
	if (result_id !== undefined) return `read it with conversation_read ${JSON.stringify({ result_id })}`
	if (run_id !== undefined) return `read it with conversation_read ${JSON.stringify({ run_id })}`
	return 'it is not kept'
}
