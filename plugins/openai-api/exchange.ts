/** One request to its answer: an ordinary run, which ends with the request. */
import { Fault, fromWire } from '../../core/errors.ts'
import type { AgentRef, Context } from '../../core/plugin.ts'
import type { ToolCallRequest, Usage } from '../../core/protocol.ts'
import type { Op } from '../../core/store/ports.ts'
import type { NewMessage, RunRecord, RunResult } from '../runs/contract.ts'
import { callId } from './ids.ts'

export interface AgentRequest {
	agent: AgentRef
	start: Omit<NewMessage, 'trigger' | 'also' | 'answerTo' | 'conversation'> & { conversation: string }
	/** Whether a question stays open, for the next request of the conversation to answer; otherwise it stops the run. */
	stays: boolean
	/** Writes in the agent's scope that become durable together with the run, or with the answer to its question. */
	also?: (run_id: string) => Promise<Op[]>
}

export interface AgentAnswer {
	text: string
	/** Calls for the client to make, under ids of ours. */
	tool_calls: ToolCallRequest[]
	finish_reason: 'stop' | 'length' | 'tool_calls' | 'content_filter'
	/** Of the model calls of this request. */
	usage: Usage
}

/** The source name of runs from this API. */
const TRIGGER = 'openai'

/**
 * Starts a run, or answers the question that the conversation waits for, as `Runs.converse`. `piece` may be called before
 * this settles, and never after the answer has. When `signal` aborts, the run is stopped.
 *
 * Throws `not_found`, `queue_full`, or `conflict` if the conversation waits for an answer and receives results of tools.
 * The answer rejects with a Fault once the run has ended: its error, the reason of `signal`, or `conflict` if an earlier request
 * of the conversation asks something while this one waits.
 */
export async function begin(
	ctx: Pick<Context, 'use'>,
	asked: AgentRequest,
	signal: AbortSignal,
	piece?: (text: string) => void,
): Promise<{ run_id: string; answer: Promise<AgentAnswer> }> {
	signal.throwIfAborted()
	const { agent, start, stays, also } = asked
	const answerTo = (run: RunRecord): string | null => {
		if (!stays || run.trigger !== TRIGGER) return null
		if (!start.given?.since?.length) return start.prompt
		throw new Fault('conflict', 'the agent has asked a question in this conversation; answer it, or begin another one')
	}
	const message: NewMessage = { ...start, trigger: TRIGGER, answerTo, ...(also && { also }) }
	const { run_id, result } = await ctx.use('runs').converse(agent, message, {
		signal,
		stopsRun: true,
		until: ['broken', 'blocked'],
		// JSON that turns out wrong is asked for again.
		...(piece && !isJson(asked) && { text: piece }),
	})
	const answer = result.then((one) => conclude(ctx, asked, run_id, one))
	answer.catch(() => {}) // nothing awaits it after the client has left
	return { run_id, answer }
}

async function conclude(
	ctx: Pick<Context, 'use'>,
	asked: AgentRequest,
	run_id: string,
	result: RunResult,
): Promise<AgentAnswer> {
	const runs = ctx.use('runs')
	const { status, error, text, usage, finish_reason } = result
	if (error) throw fromWire(error)
	if (status !== 'completed' && !(status === 'asks' && asked.stays)) await runs.stop(run_id)
	if (status === 'broken')
		throw new Fault(
			'model_interrupted',
			'the model was interrupted and gave a different answer when it was asked again, so the streamed text is not its answer; the run was stopped: send the request again',
		)
	if (status === 'blocked')
		throw new Fault(
			'conflict',
			'the agent has asked a question in this conversation meanwhile; answer it, then send this again',
		)
	if (status === 'asks') return { text, usage, tool_calls: [], finish_reason: 'stop' }
	const answer: AgentAnswer = { text, usage, tool_calls: [], finish_reason: finishReasonOf(finish_reason) }
	if (isTextAlone(asked)) return answer
	const { tool_calls = [], answer: last } = await runs.get(run_id)
	// What the agent says beside its tool calls is no part of the JSON.
	if (isJson(asked)) answer.text = last ?? ''
	if (tool_calls.length === 0) return answer
	return { ...answer, tool_calls: ownCalls(run_id, tool_calls), finish_reason: 'tool_calls' }
}

/** Why an answer without calls ended, as OpenAI's clients know it. */
export function finishReasonOf(reason: string | undefined): AgentAnswer['finish_reason'] {
	return reason === 'length' || reason === 'content_filter' ? reason : 'stop'
}

/** Whether the run's record has no more than its events. A message may answer a question of an earlier run, which has tools of its own. */
function isTextAlone(asked: AgentRequest): boolean {
	return !asked.stays && !isJson(asked) && !asked.start.given?.tools?.length
}

/** Whether the answer is JSON: it comes whole. */
export function isJson({ start }: AgentRequest): boolean {
	return start.given?.form?.json !== undefined
}

/** Calls of the client's tools under ids of ours. */
export function ownCalls(run_id: string, calls: readonly ToolCallRequest[]): ToolCallRequest[] {
	return calls.map((call, at) => ({ ...call, id: callId(run_id, at) }))
}
