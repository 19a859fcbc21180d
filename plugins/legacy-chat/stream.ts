/** A reply as Server-Sent Events with names: `token`, `invoke_start`, `invoke_end`, then `done` or `error`. */
import type { ServerResponse } from 'node:http'
import { messageOf } from '../../core/errors.ts'
import type { OpenRequest } from '../../core/open-requests.ts'
import type { AgentRef, Context } from '../../core/plugin.ts'
import { SseReply } from '../../core/sse-reply.ts'
import { turnOf } from '../../core/sse.ts'
import type { Credentials } from '../auth/contract.ts'
import type { ChatSettings, Waiting } from './contract.ts'
import { begin } from './exchange.ts'
import type { Reply } from './exchange.ts'
import type { ChatMessage } from './message.ts'

export interface ChatRequest {
	agent: AgentRef
	said: ChatMessage
	credentials: Credentials
	/** Not begun yet. A stream has it from now on, unless it throws. */
	response: ServerResponse
}

/** Settles once the stream is open, or its client has left. Throws what `begin` and `Waiting.enter` throw. */
export async function stream(
	ctx: Pick<Context<ChatSettings>, 'events' | 'use' | 'config'>,
	waiting: Waiting,
	{ agent, said, credentials, response }: ChatRequest,
): Promise<void> {
	const { heartbeat_s, stall_timeout_s } = ctx.config
	const left = new AbortController()
	const close = (): void => {
		left.abort()
		waiting.leave(own)
	}
	const told = new SseReply(response, {
		heartbeatMs: heartbeat_s * 1000,
		stallMs: stall_timeout_s * 1000,
		closed: close,
	})
	const own: OpenRequest<Credentials> = {
		credentials,
		end: (why) => left.abort(why),
		beat: (now) => told.beat(now),
	}

	waiting.enter(own)
	try {
		// A message that nobody waits for any more is not said.
		const socket = await turnOf(response)
		if (!socket) return close()
		left.signal.throwIfAborted()
		const { run_id, reply } = await begin(ctx, agent, said, left.signal, {
			token: (content) => told.write(frame('token', { content })),
			invokeStart: (skill, args) => told.write(frame('invoke_start', { skill, args })),
			invokeEnd: (result) => told.write(frame('invoke_end', { result })),
		})
		if (!told.open(socket, greeting(run_id))) return close()
		reply.then(
			(one) => told.end(lastFrame(one)),
			(why: unknown) => told.end(frame('error', { error: messageOf(why) })),
		)
	} catch (error) {
		close()
		throw error
	}
}

/**
 * A browser's EventSource connects again when its stream ends, and would say the same again. With an id it then tells us
 * that it was here before.
 */
function greeting(run_id: string): string {
	return `id: ${run_id}\n: the agent works\n\n`
}

function lastFrame(reply: Reply): string {
	if (reply.status === 'failed') return frame('error', { error: reply.message })
	const { content, whole } = reply
	const { tokens_used, processing_time_ms, question_id } = reply.metadata
	if (whole)
		return frame('done', { tokens_used, processing_time_ms, ...(question_id !== undefined && { question_id }) })
	const error =
		'the model broke off and came to other words when it was asked again: drop the tokens, the reply is in `response`'
	return frame('error', { error, response: content })
}

function frame(event: string, data: Record<string, unknown>): string {
	return `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`
}
