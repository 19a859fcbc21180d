/** Composes what models get: the order of a run for its thread, and the next request of a conversation, without a prompt. */
import type { Context, ToolDefinition } from '../../core/plugin.ts'
import { usageOf } from '../../core/protocol.ts'
import type { RunOrder } from '../../core/protocol.ts'
import { NO_MARKS } from '../../sandbox/context/earlier.ts'
import type { ModelOrder } from '../../sandbox/order.ts'
import type { AgentRecord } from '../agents/contract.ts'
import { offeredTo } from './call-policy.ts'
import { composeContext, contextWith } from './context.ts'
import type { ContextRequest } from './context.ts'
import type { ContextReport, RunInputs } from './contract.ts'
import { charge, mayHaveFamily } from './family.ts'
import { forModel } from './for-model.ts'
import { keys } from './keys.ts'
import { systemFor } from './preamble.ts'
import { unawaited } from './run-log.ts'
import { isOffered } from './send-file.ts'
import { readSummary } from './summary-record.ts'
import { isConcurrent, specOf } from './tool-specs.ts'
import { toolsReady } from './tools-ready.ts'
import type { Work } from './work.ts'

async function toolsOf({ ctx, run, agent, lock }: Work): Promise<ToolDefinition[]> {
	if (run.tools === 'none') return []
	await toolsReady(ctx, agent, lock.signal)
	const tools = await offeredTo(ctx, agent)
	return tools.filter((tool) => isOffered(tool, run))
}

export async function composeOrder(work: Work): Promise<RunOrder> {
	const { ctx, run, agent, limits, log, account, keep } = work
	const { steps } = log.journal
	const { orders, instead_of } = await ctx.use('models').choose(agent.config)
	for (const { provider } of orders) log.involve({ provider })
	// Reported once: a run that continues from its journal has the step `about`.
	if (instead_of !== undefined && steps.every(({ kind }) => kind === 'about')) {
		const message = `no provider is set up in gateway.yaml, so the offline one answers instead of "${instead_of}"`
		const payload = { from: instead_of, to: orders[0]?.provider, code: 'provider_unknown', message }
		unawaited(log.append([{ event_type: 'model.fallback', payload }]))
	}
	const stored =
		run.given && !work.fresh ? await ctx.store.get<RunInputs>(keys.given(run.agent_uid, run.run_id)) : undefined
	const given = work.fresh?.given ?? stored?.value
	const { since, tools: clients = [], one_call, form } = given ?? {}
	const [tools, elsewhere] = await Promise.all([
		toolsOf(work),
		mayHaveFamily(run, steps) ? charge(ctx.store, run, usageOf(steps)) : null,
	])
	// The journal of a fresh run is not written yet.
	const about = steps[0]?.kind === 'about' ? steps[0].content : work.about
	const models = given?.model ? orders.map((order) => adjusted(order, given.model)) : orders
	const system = await systemFor(ctx, run, agent, tools)
	const specs = [...tools.map(specOf), ...clients]
	const { history, context } = given?.history
		? { history: given.history, context: contextWith(agent.config, models, NO_MARKS) }
		: await composeContext(ctx, {
				run,
				config: agent.config,
				models,
				system,
				tools: specs,
				about,
				prompt: run.prompt,
				attachments: run.attachments,
				since,
			})
	for (const step of steps)
		if (step.kind === 'shrunk')
			context.limits[step.model] = Math.min(step.tokens, context.limits[step.model] ?? Infinity)
	const redacted = await forModel(work, {
		system,
		...(about !== undefined && { about }),
		history,
		context,
		prompt: run.prompt,
		...(run.attachments && { attachments: run.attachments }),
		...(since && { since }),
		tools: specs,
		...(form && { form }),
		journal: steps.filter((step) => step.kind === 'model' || step.kind === 'tool' || step.kind === 'remark'),
	})
	return {
		run_id: run.run_id,
		agent_id: run.agent,
		models,
		...redacted,
		...(clients.length > 0 && { client_tools: clients.map(({ name }) => name), one_call: one_call ?? false }),
		concurrent_tools: tools.filter(isConcurrent).map(({ name }) => name),
		limits,
		remaining_ms: Math.max(0, limits.wall_time_s * 1000 - run.active_ms),
		...(elsewhere !== null && { tokens_elsewhere: elsewhere }),
		...(account.isLimited && { reserves: true as const }),
		...(keep && { keeps_requests: true as const }),
	}
}

/** The order with the caller's parameters. The operator's `max_tokens` still applies. */
function adjusted(order: ModelOrder, { max_tokens, temperature, sampling }: RunInputs['model'] = {}): ModelOrder {
	const tokens = Math.min(max_tokens ?? Infinity, order.params?.max_tokens ?? Infinity)
	const params = {
		...order.params,
		...(temperature !== undefined && { temperature }),
		...(tokens < Infinity && { max_tokens: tokens }),
	}
	return { ...order, params, ...(sampling && { sampling }) }
}

/** The parts of the next request, for a request without a run. */
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
export async function contextReport(ctx: Context, agent: AgentRecord, conversation: string): Promise<ContextReport> {
	const asked = await nextRequest(ctx, agent, conversation)
	const { fitted, budget } = await composeContext(ctx, asked)
	const { provider = '', model = '' } = asked.models[0] ?? {}
	const summary = (await readSummary(ctx.store, agent.uid, conversation)) ?? null
	return { conversation, provider, model, budget, tokens: fitted.tokens, items: fitted.items(), summary }
}
