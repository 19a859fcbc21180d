/** Converts the messages of a request to the inputs of a run. */
import type { Attachment, ChatMessage } from '../../core/protocol.ts'
import type { StoredMessage } from './contract.ts'
import { paramError } from './errors.ts'

export interface RequestTurn {
	/** All system messages, joined; null if there are none. */
	system: string | null
	/** The messages before the prompt. */
	history: ChatMessage[]
	/** The user's latest message. Several in a row are joined. */
	prompt: string
	/** Attachments of these messages. */
	attachments: Attachment[]
	/** The answers after the prompt, with the results of all their calls. */
	since: ChatMessage[]
}

const PROMPT_LIMIT_BYTES = 100 * 1024
const SYSTEM_LIMIT_BYTES = 100 * 1024

/**
 * `field`: the name of the messages in the request, for errors. `isNamed`: the gateway stores the conversation. Throws
 * `invalid_request` if the messages are not in a valid order, or too long.
 */
export function turnOf(messages: readonly StoredMessage[], field: string, isNamed: boolean): RequestTurn {
	const system = messages.flatMap((message) => (message.role === 'system' ? message.content : []))
	const history = pairCalls(
		messages.filter((message) => message.role !== 'system'),
		field,
	)
	const end = history.findLastIndex(({ role }) => role === 'user') + 1
	if (end === 0) throw paramError(field, `${field} must contain a message of the user`)
	// The stored history contains the answer and its prompt, so the model would get both twice.
	if (isNamed && history.at(-1)?.role === 'assistant')
		throw paramError(
			field,
			`in a named conversation, the last of ${field} must be a message of the user, or the result of a tool call; the gateway has stored the answers`,
		)
	const begin = history.findLastIndex(({ role }, at) => at < end && role !== 'user') + 1
	const prompt = joined(history.slice(begin, end).map(({ content }) => content))
	const attachments = history.slice(begin, end).flatMap((message) => attachmentsOf(message))
	if (prompt === '' && attachments.length === 0)
		throw paramError(field, `the last message of the user in ${field} is empty`)
	limit(prompt, PROMPT_LIMIT_BYTES, field, 'the last message of the user')
	const instructions = joined(system)
	limit(instructions, SYSTEM_LIMIT_BYTES, field, 'all system messages and instructions together')
	return {
		system: instructions || null,
		history: history.slice(0, begin),
		prompt,
		attachments,
		since: history.slice(end),
	}
}

/** Joins texts with blank lines; empty ones are omitted. */
export function joined(parts: readonly (string | null | undefined)[]): string {
	return parts.filter((part) => part !== null && part !== undefined && part !== '').join('\n\n')
}

/** Checks that the result of each call follows it, as models require. Adds the names of the tools to the results. */
function pairCalls(messages: readonly ChatMessage[], field: string): ChatMessage[] {
	const open = new Map<string, string>()
	const history: ChatMessage[] = []
	const close = (): void => {
		for (const [id, name] of open)
			throw paramError(
				field,
				`the call ${id} of ${name} has no result; send one for each call, directly after the calls`,
			)
	}
	for (const message of messages) {
		if (message.role === 'tool') {
			const name = open.get(message.call_id)
			if (name === undefined)
				throw paramError(
					field,
					`there is a result for "${message.call_id}", which is not a call of the message before it`,
				)
			open.delete(message.call_id)
			history.push({ ...message, name })
			continue
		}
		close()
		const calls = message.role === 'assistant' ? (message.tool_calls ?? []) : []
		for (const { id, name } of calls) {
			if (open.has(id)) throw paramError(field, `two calls have the id "${id}"`)
			open.set(id, name)
		}
		// Some models refuse empty messages.
		if (message.content !== '' || calls.length > 0 || attachmentsOf(message).length > 0) history.push(message)
	}
	close()
	return history
}

function attachmentsOf(message: ChatMessage): Attachment[] {
	return message.role === 'assistant' ? [] : (message.attachments ?? [])
}

function limit(text: string, bytes: number, field: string, what: string): void {
	if (Buffer.byteLength(text) > bytes)
		throw paramError(field, `${what} in ${field} must be at most ${bytes / 1024} KiB of UTF-8`)
}
