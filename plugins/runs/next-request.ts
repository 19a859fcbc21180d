/** What the next run of a conversation would be composed of, without its prompt. */
import type { Context } from '../../core/plugin.ts'
import type { AgentRecord } from '../agents/contract.ts'
import type {} from '../models/contract.ts'
import type { ContextRequest } from './context.ts'
import { offeredTo } from './call-policy.ts'
import { systemFor } from './preamble.ts'
import { specOf } from './tool-specs.ts'

export async function nextRequest(
	ctx: Pick<Context, 'use' | 'toolbox' | 'extensions' | 'log'>,
	agent: AgentRecord,
	conversation: string,
): Promise<ContextRequest> {
	const { orders } = await ctx.use('models').choose(agent.config)
	const tools = await offeredTo(ctx, agent)
	return {
		run: { agent_uid: agent.uid, conversation },
		config: agent.config,
		models: orders,
		system: await systemFor(ctx, {}, agent, tools),
		tools: tools.map(specOf),
		prompt: '',
	}
}
