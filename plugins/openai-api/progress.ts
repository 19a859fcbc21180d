/** Continuing after calls of the client's tools. */
import type { AgentRef, Context } from '../../core/plugin.ts'
import type { ChatMessage } from '../../core/protocol.ts'
import type {} from '../runs/contract.ts'
import { mayKnow } from './conversations.ts'
import { callId, callIn } from './ids.ts'
import type { Turn } from './turn.ts'

/**
 * The messages since the prompt. If the results belong to calls with which a run of this agent and owner ended, that run's own
 * messages replace the client's copy of them: its own tools are not called again for the same.
 */
export async function progressOf(
	ctx: Pick<Context, 'store' | 'use'>,
	agent: AgentRef,
	owner: string,
	{ prompt, since }: Turn,
): Promise<ChatMessage[]> {
	const runs = ctx.use('runs')
	const asked = since.findLastIndex(({ role }) => role === 'assistant')
	const results = since.slice(asked + 1).flatMap((message) => (message.role === 'tool' ? message : []))
	const call = callIn(results[0]?.call_id ?? '')
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
