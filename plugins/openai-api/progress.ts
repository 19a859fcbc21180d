/** Going on after calls of the client's tools. */
import { isFault } from '../../core/errors.ts'
import type { AgentRef } from '../../core/plugin.ts'
import type { ChatMessage } from '../../core/protocol.ts'
import type { RunRecord, Runs } from '../runs/contract.ts'
import { callId, callIn } from './ids.ts'
import type { Turn } from './turn.ts'

/**
 * The messages since the prompt. Where the results are of calls with which a run of this agent ended, all that this run
 * did stands in place of what the client knows of it: its own tools are not called again for the same.
 */
export async function progressOf(
	runs: Pick<Runs, 'get' | 'progress'>,
	agent: AgentRef,
	{ prompt, since }: Turn,
): Promise<ChatMessage[]> {
	const asked = since.findLastIndex(({ role }) => role === 'assistant')
	const results = since.slice(asked + 1).flatMap((message) => (message.role === 'tool' ? message : []))
	const run = await runOf(runs, results[0]?.call_id ?? '')
	if (run?.agent_uid !== agent.uid || run.prompt !== prompt || run.tool_calls?.length !== results.length) return since
	const own = run.tool_calls.flatMap((call, at): ChatMessage[] => {
		const result = results.find(({ call_id }) => call_id === callId(run.run_id, at))
		return result ? [{ ...result, call_id: call.id, name: call.name }] : []
	})
	const done = own.length === results.length ? await runs.progress(run.run_id) : []
	return done.length > 0 ? [...done, ...own] : since
}

async function runOf(runs: Pick<Runs, 'get'>, call_id: string): Promise<RunRecord | undefined> {
	const call = callIn(call_id)
	if (!call) return undefined
	try {
		return await runs.get(call.run_id)
	} catch (error) {
		if (isFault(error, 'not_found')) return undefined
		throw error
	}
}
