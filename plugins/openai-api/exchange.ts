/** Serves one request with an ordinary run, which ends with the request. */
import { Fault, fromWire } from '../../core/errors.ts'
import type { AgentRef, Context } from '../../core/plugin.ts'
import type { ToolCallRequest, Usage } from '../../core/protocol.ts'
import type { Op } from '../../core/store/ports.ts'
import type { NewMessage, RunRecord, RunResult } from '../runs/contract.ts'
import { callId } from './ids.ts'

export interface AgentRequest {
	agent: AgentRef
	start: Omit<NewMessage, 'trigger' | 'also' | 'answerTo' | 'conversation'> & { conversation: string }
	/** Whether the next request of the conversation can answer a question of the run. Otherwise a question stops the run. */
	keepsQuestions: boolean
	/** Writes in the agent's scope that become durable together with the run, or with the answer to its question. */
	also?: (run_id: string) => Promise<Op[]>
}

export interface AgentAnswer {
	text: string
	/** Calls for the client to execute, with the gateway's ids. */
	tool_calls: ToolCallRequest[]
	finish_reason: 'stop' | 'length' | 'tool_calls' | 'content_filter'
	/** Of all model calls of this request. */
	usage: Usage
}

/** `trigger` of the runs of this API. */
const TRIGGER = 'openai'

/**
 * Starts a run, or answers the open question of the conversation, as `Runs.converse`. `piece` may be called before this
 * resolves, and never after `answer` has settled. When `signal` aborts, the run is stopped.
 *
 * Throws `not_found`, `queue_full`, or `conflict` if the conversation has an open question and receives results of tools.
 * `answer` rejects with a Fault once the run has ended: its error, the reason of `signal`, or `conflict` if an earlier request of
 * the conversation asks a question while this one waits.
 */
export async function startRun(
	ctx: Pick<Context, 'use'>,
	request: AgentRequest,
	signal: AbortSignal,
	piece?: (text: string) => void,
): Promise<{ run_id: string; answer: Promise<AgentAnswer> }> {
	signal.throwIfAborted()
	const { agent, start, keepsQuestions, also } = request
	const answerTo = (run: RunRecord): string | null => {
		if (!keepsQuestions || run.trigger !== TRIGGER) return null
		if (!start.given?.since?.length) return start.prompt
		throw new Fault('conflict', 'the agent has asked a question in this conversation; answer it, or begin another one')
	}
	const message: NewMessage = { ...start, trigger: TRIGGER, answerTo, ...(also && { also }) }
	const { run_id, result } = await ctx.use('runs').converse(agent, message, {
		signal,
		stopsRun: true,
		until: ['broken', 'blocked'],
		// JSON is not streamed: if it is invalid, the model is asked again.
		...(piece && !isJson(request) && { text: piece }),
	})
	const answer = result.then((ended) => conclude(ctx, request, run_id, ended))
	answer.catch(() => {}) // nothing awaits it after the client has disconnected
	return { run_id, answer }
}

async function conclude(
	ctx: Pick<Context, 'use'>,
	request: AgentRequest,
	run_id: string,
	result: RunResult,
): Promise<AgentAnswer> {
	const runs = ctx.use('runs')
	const { status, error, text, usage, finish_reason } = result
	if (error) throw fromWire(error)
	if (status !== 'completed' && !(status === 'asks' && request.keepsQuestions)) await runs.stop(run_id)
	if (status === 'broken')
		throw new Fault(
			'model_interrupted',
			'the model was interrupted and gave a different answer when it was asked again, so the streamed text is not its answer; the run was stopped; send the request again',
		)
	if (status === 'blocked')
		throw new Fault(
			'conflict',
			'the agent has since asked a question in this conversation; answer it, then send this request again',
		)
	if (status === 'asks') return { text, usage, tool_calls: [], finish_reason: 'stop' }
	const answer: AgentAnswer = { text, usage, tool_calls: [], finish_reason: finishReasonOf(finish_reason) }
	if (isTextAlone(request)) return answer
	const { tool_calls = [], answer: last } = await runs.get(run_id)
	// Without the texts beside tool calls, which are not part of the JSON.
	if (isJson(request)) answer.text = last ?? ''
	if (tool_calls.length === 0) return answer
	return { ...answer, tool_calls: ownCalls(run_id, tool_calls), finish_reason: 'tool_calls' }
}

/** OpenAI's finish reason of an answer without calls. */
export function finishReasonOf(reason: string | undefined): AgentAnswer['finish_reason'] {
	return reason === 'length' || reason === 'content_filter' ? reason : 'stop'
}

/** Whether the answer cannot have calls or JSON. A message may answer a question of an earlier run that has tools. */
function isTextAlone(request: AgentRequest): boolean {
	return !request.keepsQuestions && !isJson(request) && !request.start.given?.tools?.length
}

/** Whether the answer is JSON, which is never streamed in pieces. */
export function isJson({ start }: AgentRequest): boolean {
	return start.given?.form?.json !== undefined
}

/** Calls of the client's tools, with the gateway's ids. */
export function ownCalls(run_id: string, calls: readonly ToolCallRequest[]): ToolCallRequest[] {
	return calls.map((call, at) => ({ ...call, id: callId(run_id, at) }))
}
