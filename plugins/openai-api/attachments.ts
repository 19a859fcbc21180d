/** Stores the attachments of a request's messages. */
import { isFault } from '../../core/errors.ts'
import type { AgentRef, Context } from '../../core/plugin.ts'
import type { RequestMessage, StoredMessage } from './contract.ts'
import { paramError } from './errors.ts'

/** Further errors for which an attachment of an earlier message is omitted. */
const tolerated = ['address_refused', 'payload_too_large'] as const

/**
 * Stores the attachments of the user's latest message and of all later messages. Throws `invalid_request` if one of these cannot
 * be stored. Clients send earlier messages with every request, whose attachments may no longer be available: a line of text
 * replaces them. `isKept`: the gateway stores the conversation, so attachments of earlier messages are skipped.
 */
export async function withAttachments(
	ctx: Pick<Context, 'use'>,
	agent: AgentRef,
	messages: readonly RequestMessage[],
	{ field, isKept }: { field: string; isKept: boolean },
): Promise<StoredMessage[]> {
	const latest = messages.findLastIndex(({ role }) => role === 'user')
	const begin = messages.findLastIndex(({ role }, at) => at < latest && role !== 'user' && role !== 'system') + 1
	const stored: StoredMessage[] = []
	for (const [at, message] of messages.entries()) {
		if (message.role === 'system' || message.role === 'assistant') {
			stored.push(message)
			continue
		}
		const { sources = [], ...rest } = message
		const isNew = at >= begin
		if (sources.length === 0 || (isKept && !isNew)) {
			stored.push(rest)
			continue
		}
		try {
			stored.push({ ...rest, attachments: await ctx.use('attachments').take(agent, sources) })
		} catch (error) {
			if (!isFault(error, 'invalid_request', ...(isNew ? [] : tolerated))) throw error
			if (isNew) throw paramError(`${field}[${at}].content`, error.message)
			stored.push({ ...rest, content: `${rest.content}\n[attachments are omitted: ${error.message}]`.trim() })
		}
	}
	return stored
}
