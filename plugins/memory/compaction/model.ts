/** Asks an agent's model in a run without tools, in a separate conversation. */
import { Fault } from '../../../core/errors.ts'
import type { AgentRef, Context } from '../../../core/plugin.ts'
import type {} from '../../agents/contract.ts'
import type {} from '../../models/contract.ts'
import type {} from '../../runs/contract.ts'

/** Throws if the model fails. */
export type AskModel = (prompt: string, persona: string) => Promise<string>

/** Undefined if the agent has only the built-in provider. */
export async function modelOf(
	ctx: Pick<Context, 'use' | 'find' | 'signal'>,
	agent: AgentRef,
	compaction: string,
): Promise<AskModel | undefined> {
	const record = await ctx.use('agents').find(agent.name)
	const choice = record && (await ctx.find('models')?.choose(record.config))
	if (!ctx.find('runs') || !choice || choice.orders[0]?.kind === 'offline') return undefined
	return async (prompt, persona) => {
		const runs = ctx.use('runs')
		const conversation = `compaction:${compaction}`
		const request = { prompt, persona, conversation, trigger: 'compaction', tools: 'none' } as const
		const { run_id } = await runs.start(agent, request)
		const { result } = await runs.follow(run_id, { signal: ctx.signal })
		await result
		const run = await runs.get(run_id)
		if (run.status === 'completed') return run.answer ?? ''
		throw new Fault(
			'model_unavailable',
			`the model merged no memories: ${run.error?.message ?? `its run was ${run.status}`}`,
		)
	}
}
