/** Serves a request with one response, or with a stream of events. */
import { Fault, shownFault } from '../../core/errors.ts'
import type { Context } from '../../core/plugin.ts'
import type { WaitingRequest } from '../auth/contract.ts'
import type { OpenAiSettings } from './contract.ts'
import { isJson, startRun } from './exchange.ts'
import type { AgentAnswer, AgentRequest } from './exchange.ts'

/** The content of a stream. Each function returns complete events. */
export interface StreamFormat {
	begin(run_id: string): string
	/** A piece of the text, never empty. */
	piece(text: string): string
	end(answer: AgentAnswer): string | Promise<string>
	failed(fault: Fault): string | Promise<string>
}

type ApiDeps = Pick<Context<OpenAiSettings>, 'use' | 'log' | 'config'>

/** OpenAI's clients retry after 409 and 5xx. Here the gateway has already retried, and a repeated request would start another run. */
const FINAL = { 'x-should-retry': 'false' }

/** Waits for the complete answer. Throws the run's error. If the client disconnects, the run is stopped. */
export async function waitForAnswer(
	ctx: ApiDeps,
	client: WaitingRequest,
	request: AgentRequest,
): Promise<{ run_id: string; answer: AgentAnswer }> {
	return ctx.use('auth').answerWhole(client, async (signal) => {
		const { run_id, answer } = await startRun(ctx, request, signal)
		client.response.setHeader('x-svc-run-id', run_id)
		return { run_id, answer: await answer.catch((error: unknown) => Promise.reject(final(error))) }
	})
}

/** Resolves once the stream is open, or the client has disconnected. Throws if the run could not start. */
export async function streamAnswer(
	ctx: ApiDeps,
	client: WaitingRequest,
	request: AgentRequest,
	format: StreamFormat,
): Promise<void> {
	await ctx.use('auth').answerStream(client, ctx.config, async (signal, write) => {
		const { run_id, answer } = await startRun(ctx, request, signal, (text) => write(() => format.piece(text)))
		client.response.setHeader('x-svc-run-id', run_id)
		const last = answer
			.then(
				async (complete) => {
					const json = isJson(request) && complete.text !== '' ? format.piece(complete.text) : ''
					return json + (await format.end(complete))
				},
				(error: unknown) => format.failed(shownFault(error)),
			)
			.catch((error: unknown) => {
				ctx.log.error({ err: error, run_id }, 'an answer could not be stored')
				return format.failed(shownFault(error))
			})
		return { first: format.begin(run_id), last }
	})
}

function final(error: unknown): unknown {
	if (!(error instanceof Fault) || error.code === 'unauthorized' || error.code === 'unavailable') return error
	const { code, message, headers, provider_code, provider_status } = error
	return new Fault(code, message, { headers: { ...headers, ...FINAL }, provider_code, provider_status, cause: error })
}
