/** A request from its entry to its end: as one answer, or as a stream of events. */
import type { ServerResponse } from 'node:http'
import { Fault } from '../../core/errors.ts'
import type { OpenRequest } from '../../core/open-requests.ts'
import type { Context } from '../../core/plugin.ts'
import { SseReply } from '../../core/sse-reply.ts'
import { turnOf } from '../../core/sse.ts'
import type { Credentials } from '../auth/contract.ts'
import type { OpenAiSettings } from './contract.ts'
import { begin } from './exchange.ts'
import type { Answer, Asked } from './exchange.ts'

export interface Client {
	credentials: Credentials
	/** Not begun yet. A stream has it from now on, unless it throws. */
	response: ServerResponse
}

/** What a stream says; each answers with whole events. */
export interface Script {
	begin(run_id: string): string
	/** A piece of the text, never empty. */
	piece(text: string): string
	end(answer: Answer): string | Promise<string>
	failed(fault: Fault): string | Promise<string>
}

type Place = Pick<Context<OpenAiSettings>, 'events' | 'use' | 'log' | 'config'>

/** Clients of OpenAI's ask again by themselves after 409 and 5xx. The gateway has done so, and the run would be a new one. */
const FINAL = { 'x-should-retry': 'false' }

/** Waits for the whole answer. Throws why there is none; the run of a client that leaves is stopped. */
export async function answerTo(
	ctx: Place,
	{ credentials, response }: Client,
	asked: Asked,
): Promise<{ run_id: string; answer: Answer }> {
	const left = new AbortController()
	const { open } = ctx.use('openai-api')
	const own: OpenRequest<Credentials> = { credentials, end: (why) => left.abort(why) }
	const gone = (): void => left.abort(new Fault('stopped', 'the client has left'))
	open.enter(own)
	response.once('close', gone)
	if (response.destroyed) gone()
	try {
		const { run_id, answer } = await begin(ctx, asked, left.signal)
		response.setHeader('x-svc-run-id', run_id)
		return { run_id, answer: await answer.catch((error: unknown) => Promise.reject(final(error))) }
	} finally {
		open.leave(own)
	}
}

/** Settles once the stream is open, or its client has left. Throws why it could not begin. */
export async function stream(
	ctx: Place,
	{ credentials, response }: Client,
	asked: Asked,
	script: Script,
): Promise<void> {
	const { heartbeat_s, stall_timeout_s } = ctx.config
	const { open } = ctx.use('openai-api')
	const left = new AbortController()
	/** Said while the run is being started; its head comes first. */
	let early: string[] | null = []
	const close = (): void => {
		left.abort(new Fault('stopped', 'the client has left'))
		open.leave(own)
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

	open.enter(own)
	try {
		// What nobody waits for any more is not begun.
		const socket = await turnOf(response)
		if (!socket) return close()
		const { run_id, answer } = await begin(ctx, asked, left.signal, (text) => {
			if (early) early.push(text)
			else told.write(script.piece(text))
		})
		if (response.destroyed) return close()
		response.setHeader('x-svc-run-id', run_id)
		const first = script.begin(run_id) + early.map((text) => script.piece(text)).join('')
		early = null
		told.open(socket, first)
		answer
			.then(
				(one) => script.end(one),
				(error: unknown) => script.failed(faultOf(error)),
			)
			.catch((error: unknown) => {
				ctx.log.error({ err: error, run_id }, 'an answer could not be kept')
				return script.failed(faultOf(error))
			})
			.then((last) => told.end(last))
			.catch(() => told.cut())
	} catch (error) {
		close()
		throw error
	}
}

function final(error: unknown): unknown {
	if (!(error instanceof Fault) || error.code === 'unauthorized' || error.code === 'unavailable') return error
	const { code, message, headers } = error
	return new Fault(code, message, { headers: { ...headers, ...FINAL }, cause: error })
}

/** What may be told of an error. */
export function faultOf(error: unknown): Fault {
	return error instanceof Fault ? error : new Fault('internal', 'the gateway failed; its log says why')
}
