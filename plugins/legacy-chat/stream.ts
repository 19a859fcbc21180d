/** A reply as Server-Sent Events with names: `token`, `invoke_start`, `invoke_end`, then `done` or `error`. */
import type { ServerResponse } from 'node:http'
import { messageOf } from '../../core/errors.ts'
import type { AgentRef, Context } from '../../core/plugin.ts'
import { chunk, Connection, turnOf } from '../../core/sse.ts'
import type { Credentials } from '../auth/contract.ts'
import type { ChatSettings } from './contract.ts'
import { begin } from './exchange.ts'
import type { Reply } from './exchange.ts'
import type { ChatMessage } from './message.ts'
import type { Guest, Room } from './room.ts'

export interface ChatRequest {
	agent: AgentRef
	said: ChatMessage
	credentials: Credentials
	/** Not begun yet. A stream has it from now on, unless it throws. */
	response: ServerResponse
}

/** Bytes that may wait for a client. The last word comes on top: it is small, or what the client asked for. */
const BACKLOG_LIMIT = 1024 * 1024

/** Settles once the stream is open, or its client has left. Throws what `begin` and `Room.enter` throw. */
export async function stream(
	ctx: Pick<Context<ChatSettings>, 'events' | 'use' | 'config'>,
	room: Room<Guest>,
	{ agent, said, credentials, response }: ChatRequest,
): Promise<void> {
	const { heartbeat_s, stall_timeout_s } = ctx.config
	const left = new AbortController()
	let connection: Connection | undefined
	let early = ''
	let quietSince = performance.now()

	const write = (text: string): void => {
		quietSince = performance.now()
		if (response.destroyed) return
		if (!connection) early += text // heard while the run is being started
		else if (connection.backlog > BACKLOG_LIMIT) connection.cut()
		else connection.write(chunk(text))
	}
	const end = (text: string): void => {
		if (response.destroyed) return
		connection?.write(chunk(text))
		connection?.whenReady(() => connection?.end())
	}
	const guest: Guest = {
		credentials,
		end: (why) => left.abort(why),
		beat(now) {
			if (connection && !connection.full && now - quietSince >= heartbeat_s * 1000) write(': still here\n\n')
		},
	}
	const close = (): void => {
		left.abort()
		room.leave(guest)
	}

	room.enter(guest)
	try {
		// A message that nobody waits for any more is not said.
		const socket = await turnOf(response)
		if (!socket) return close()
		left.signal.throwIfAborted()
		const { run_id, reply } = await begin(ctx, agent, said, left.signal, {
			token: (content) => write(frame('token', { content })),
			invokeStart: (skill, args) => write(frame('invoke_start', { skill, args })),
			invokeEnd: (result) => write(frame('invoke_end', { result })),
		})
		if (response.destroyed) return close()
		connection = new Connection(response, socket, greeting(run_id) + early, {
			stallMs: stall_timeout_s * 1000,
			closed: close,
		})
		reply.then(
			(one) => end(lastFrame(one)),
			(why: unknown) => end(frame('error', { error: messageOf(why) })),
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
