/** Continues a run's work after calls of the client's tools. */
import type { AgentRef, Context } from '../../core/plugin.ts'
import type { ChatMessage } from '../../core/protocol.ts'
import type { RequestMessage } from './contract.ts'
import { mayKnow } from './conversations.ts'
import { ownCalls } from './exchange.ts'
import { callId, parseCallId } from './ids.ts'
import type { RequestTurn } from './turn.ts'

/**
 * The messages since the prompt. If a run of this agent and owner ended with the calls that the client answers, that run's messages
 * replace the client's copy of them. They include the calls of the agent's own tools, so that these are not repeated.
 */
export async function progressOf(
	ctx: Pick<Context, 'store' | 'use'>,
	agent: AgentRef,
	owner: string,
	{ prompt, since }: RequestTurn,
): Promise<ChatMessage[]> {
	const runs = ctx.use('runs')
	const asked = since.findLastIndex(({ role }) => role === 'assistant')
	const results = since.slice(asked + 1).flatMap((message) => (message.role === 'tool' ? message : []))
	const call = parseCallId(results[0]?.call_id ?? '')
	const run = call && (await runs.find(call.run_id))
	if (run && !(await mayKnow(ctx, agent, owner, run.conversation))) return since
	if (run?.agent_uid !== agent.uid || run.prompt !== prompt || run.tool_calls?.length !== results.length) return since
	const own = run.tool_calls.flatMap((call, at): ChatMessage[] => {
		const result = results.find(({ call_id }) => call_id === callId(run.run_id, at))
		return result ? [{ ...result, call_id: call.id, name: call.name }] : []
	})
	const done = own.length === results.length ? await runs.progress(run.run_id) : []
	return done.length > 0 ? [...done, ...own] : since
}

/**
 * In a stored conversation, a request may consist of results alone. This adds the prompt and the calls of their run before them.
 * Returns other messages unchanged.
 */
export async function withOpenCalls(
	ctx: Pick<Context, 'use'>,
	agent: AgentRef,
	conversation: string | undefined,
	messages: RequestMessage[],
): Promise<RequestMessage[]> {
	const first = messages.find(({ role }) => role !== 'system')
	if (conversation === undefined || first?.role !== 'tool') return messages
	const call = parseCallId(first.call_id)
	const run = call && (await ctx.use('runs').find(call.run_id))
	if (run?.agent_uid !== agent.uid || run.conversation !== conversation || !run.tool_calls) return messages
	const tool_calls = ownCalls(run.run_id, run.tool_calls)
	return [
		{ role: 'user', content: run.prompt, ...(run.attachments && { attachments: run.attachments }) },
		{ role: 'assistant', content: run.answer ?? '', tool_calls },
		...messages,
	]
}
