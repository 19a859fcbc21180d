/** From messages of a request with attachments somewhere to messages whose attachments the agent has. */
import { isFault } from '../../core/errors.ts'
import type { AgentRef, Context } from '../../core/plugin.ts'
import type { ChatMessage } from '../../core/protocol.ts'
import type { AttachmentSource } from '../attachments/contract.ts'
import type { RequestMessage, StoredMessage } from './contract.ts'
import { wrong } from './errors.ts'

/**
 * Stores the attachments of the latest message of the user and of what follows it; those that cannot be stored refuse the
 * request. Clients send earlier messages again and again: what has gone meanwhile is told in a line. `isKept`: the gateway
 * has the earlier messages itself, so theirs are passed over.
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
		if (sources.length === 0 || (isKept && at < begin)) stored.push(rest)
		else stored.push(at < begin ? await orTold(ctx, agent, rest, sources) : await orRefused(rest, sources, at))
	}
	return stored

	async function orRefused<M extends ChatMessage>(message: M, sources: AttachmentSource[], at: number): Promise<M> {
		try {
			return { ...message, attachments: await ctx.use('attachments').take(agent, sources) }
		} catch (error) {
			if (!isFault(error, 'invalid_request')) throw error
			throw wrong(`${field}[${at}].content`, error.message)
		}
	}
}

async function orTold<M extends ChatMessage>(
	ctx: Pick<Context, 'use'>,
	agent: AgentRef,
	message: M,
	sources: AttachmentSource[],
): Promise<M> {
	try {
		return { ...message, attachments: await ctx.use('attachments').take(agent, sources) }
	} catch (error) {
		if (!isFault(error, 'invalid_request', 'address_refused', 'payload_too_large')) throw error
		return { ...message, content: `${message.content}\n[attachments are left out: ${error.message}]`.trim() }
	}
}
