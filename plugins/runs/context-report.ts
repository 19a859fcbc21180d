/** What the next request of a conversation would contain. */
import type { Context } from '../../core/plugin.ts'
import type { AgentRecord } from '../agents/contract.ts'
import { composeContext } from './context.ts'
import type { ContextReport, RunSettings } from './contract.ts'
import { nextRequest } from './next-request.ts'
import { readSummary } from './summary-record.ts'

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
