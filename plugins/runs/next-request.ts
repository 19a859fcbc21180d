/** The next request of a conversation, without a prompt: its parts, and a report of its content. */
import type { Context } from '../../core/plugin.ts'
import type { AgentRecord } from '../agents/contract.ts'
import { composeContext } from './context.ts'
import type { ContextRequest } from './context.ts'
import type { ContextReport, RunSettings } from './contract.ts'
import { offeredTo } from './call-policy.ts'
import { systemFor } from './preamble.ts'
import { readSummary } from './summary-record.ts'
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

/** As `Runs.context`. */
export async function contextReport(
	ctx: Context<RunSettings>,
	agent: AgentRecord,
	conversation: string,
): Promise<ContextReport> {
	const asked = await nextRequest(ctx, agent, conversation)
	const { fitted, budget } = await composeContext(ctx, asked)
	const { provider = '', model = '' } = asked.models[0] ?? {}
	const summary = (await readSummary(ctx.store, agent.uid, conversation)) ?? null
	return { conversation, provider, model, budget, tokens: fitted.tokens, items: fitted.items, summary }
}
