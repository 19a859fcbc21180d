/** A reply as Server-Sent Events with names: `token`, `invoke_start`, `invoke_end`, then `done` or `error`. */
import { messageOf } from '../../core/errors.ts'
import type { AgentRef, Context } from '../../core/plugin.ts'
import type { WaitingRequest } from '../auth/contract.ts'
import type { ChatSettings } from './contract.ts'
import { begin } from './exchange.ts'
import type { ChatReply } from './exchange.ts'
import type { ChatMessage } from './message.ts'

/** Settles once the stream is open, or its client has left. Throws what `begin` and `answerStream` throw. */
export async function stream(
	ctx: Pick<Context<ChatSettings>, 'use' | 'config'>,
	client: WaitingRequest,
	agent: AgentRef,
	said: ChatMessage,
): Promise<void> {
	await ctx.use('auth').answerStream(client, ctx.config, async (signal, write) => {
		const { run_id, reply } = await begin(ctx, agent, said, signal, (type, data) => write(() => frame(type, data)))
		const last = reply.then(lastFrame, (why: unknown) => frame('error', { error: messageOf(why) }))
		return { first: greeting(run_id), last }
	})
}

/** An EventSource reconnects when the stream ends, which would send the message again. It then sends this id as `Last-Event-ID`. */
function greeting(run_id: string): string {
	return `id: ${run_id}\n: the agent works\n\n`
}

function lastFrame(reply: ChatReply): string {
	if (reply.status === 'failed') return frame('error', { error: reply.message })
	const { content, whole } = reply
	const { tokens_used, processing_time_ms, question_id } = reply.metadata
	if (whole) return frame('done', { tokens_used, processing_time_ms, question_id })
	const error =
		'the model was interrupted and gave a different answer when it was asked again: drop the tokens; the reply is in `response`'
	return frame('error', { error, response: content })
}

function frame(event: string, data: Record<string, unknown>): string {
	return `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`
}
