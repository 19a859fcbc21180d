/** Selects the part of a conversation for a run's requests, and where it is cut. The worker then fits each request. */
import type { Context } from '../../core/plugin.ts'
import type { Attachment, ChatMessage, ModelAnswer, ToolSpec } from '../../core/protocol.ts'
import type { ContextMarks, ContextOrder, ContextSummary, ModelOrder } from '../../sandbox/order.ts'
import { BoundedMap } from '../../core/util/bounded-map.ts'
import { budgetFor, corrected, modelKey } from '../../sandbox/context/budget.ts'
import { familyFactor } from '../../sandbox/context/estimate.ts'
import { NO_MARKS } from '../../sandbox/context/earlier.ts'
import { fit } from '../../sandbox/context/fit.ts'
import type { Fitted } from '../../sandbox/context/fit.ts'
import type { FitInput } from '../../sandbox/context/measure.ts'
import { withCalls } from '../../sandbox/context/step-messages.ts'
import type { AgentConfig } from '../agents/contract.ts'
import type { RunRecord } from './contract.ts'
import { historyOf } from './history.ts'
import { keys } from './keys.ts'
import { awaitSummary, readSummary } from './summary-record.ts'

export interface ContextRequest {
	run: Pick<RunRecord, 'agent_uid' | 'conversation'> & { run_id?: string }
	config: AgentConfig
	models: readonly ModelOrder[]
	system: string | null
	tools: readonly ToolSpec[]
	about?: string | undefined
	prompt: string
	attachments?: Attachment[] | undefined
	since?: readonly ChatMessage[] | undefined
}

interface Composed {
	history: ChatMessage[]
	context: ContextOrder
	fitted: Fitted
	/** Maximum tokens of a request to the first model. */
	budget: number
}

/** Default of `config.context.tokens`: larger requests cost more, and help little. */
const CONTEXT_TOKENS = 100_000
/** The share of the budget that a run starts with at most, which leaves room for the results of its calls. */
const FILL = 0.8
const MODELS = 1_000

/** Learned from answers, by model, until the gateway stops: how the model counts tokens, and how many it accepts. */
const factors = new BoundedMap<string, number>(MODELS)
const limits = new BoundedMap<string, number>(MODELS)
/** Tokens of the longest request that each model has accepted. */
const longestAccepted = new BoundedMap<string, number>(MODELS)
/** Context windows that servers stated when they refused a request, by the settings that may change them. */
const statedWindows = new BoundedMap<string, { tokens: number; until: number }>(MODELS)
/** After this time one longer request is tried: the server may have been restarted with a larger window. */
const STATED_MS = 24 * 60 * 60 * 1000
/** The factor by which each answer raises a learned limit: the refused text may have been unusual, or the server accepts more by now. */
const RAISE = 1.01
/** Limits from here on are dropped. */
const UNLIMITED_TOKENS = 10_000_000

/** Runs of conversations that may need a summary when the run ends. */
const longRuns = new BoundedMap<string, true>(10_000)
/** The share of the budget from which a conversation is long. */
const LONG_SHARE = 0.35
/** How long a run waits for a summary in progress that covers turns which it would omit. */
const WAIT_MS = 5_000

/** Reads only as many turns as may fit. A new cut of the conversation is stored before it is used. */
export async function composeContext(
	ctx: Pick<Context, 'store' | 'events'>,
	request: ContextRequest,
	mayWait = request.run.run_id !== undefined,
): Promise<Composed> {
	const { agent_uid, conversation, run_id } = request.run
	const { input, context } = await contextInput(ctx, request)
	const fitted = fit(input)
	const { marks } = fitted
	const isCut = marks !== context.marks
	if (isCut && mayWait && marks.omitted.length > 0 && (await awaitSummary(agent_uid, conversation, WAIT_MS)))
		return composeContext(ctx, request, false)
	if (run_id !== undefined) {
		if (isCut) await ctx.store.put(keys.marks(agent_uid, conversation), marks)
		if (fitted.tokens > input.budget * LONG_SHARE || marks.omitted.length > 0) longRuns.set(run_id, true)
	}
	const { history } = input
	const begin = history.findIndex((message) => message.role === 'user' && (message.run_id ?? '') >= (marks.from ?? ''))
	const shown = begin < 0 ? [] : history.slice(begin)
	return { history: shown, context: { ...context, marks }, fitted, budget: input.budget }
}

/** Whether the conversation of this run is long. True at the first call only. */
export function isLong(run_id: string): boolean {
	return longRuns.delete(run_id)
}

/** The input for fitting a request: the earlier turns that may fit, the cut, and the summary of the turns before it. */
export async function contextInput(
	ctx: Pick<Context, 'store' | 'events'>,
	{ run, config, models, system, tools, about, prompt, attachments, since = [] }: ContextRequest,
): Promise<{ input: FitInput; context: ContextOrder }> {
	const [stored, summary] = await Promise.all([
		ctx.store.getShared<ContextMarks>(keys.marks(run.agent_uid, run.conversation)),
		config.context?.summary === false ? undefined : readSummary(ctx.store, run.agent_uid, run.conversation),
	])
	const context = contextWith(config, models, stored?.value ?? NO_MARKS, summary)
	const [first] = models
	if (!first) throw new TypeError('a run has at least one model')
	const { tokens: budget, factor } = budgetFor(first, context)
	const most = Math.max(...models.map((model) => budgetFor(model, context).tokens / budgetFor(model, context).factor))
	const { marks } = context
	const { messages: history, unread } = await historyOf(ctx, run, { ...marks, tokens: most })
	const input: FitInput = {
		system,
		tools: [...tools],
		turns: [
			...history,
			...(about === undefined ? [] : [{ role: 'user' as const, content: about }]),
			{ role: 'user' as const, content: prompt, ...(attachments && { attachments }) },
			...since,
		].map((message) => (message.role === 'assistant' ? withCalls(message) : message)),
		history,
		unread,
		// A future turn sorts after all others: 'g' sorts after every hexadecimal id.
		run_id: run.run_id ?? 'g',
		marks,
		summary,
		budget,
		fill: FILL,
		factor,
	}
	return { input, context }
}

/** The order of the context. With `NO_MARKS` the conversation is cut anew, as for a history that the caller sends. */
export function contextWith(
	config: AgentConfig,
	models: readonly ModelOrder[],
	marks: ContextMarks,
	summary?: ContextSummary,
): ContextOrder {
	const own = (valueOf: (model: ModelOrder) => number | undefined): Record<string, number> =>
		Object.fromEntries(
			models.flatMap((model) => {
				const value = valueOf(model)
				return value === undefined ? [] : [[modelKey(model), value]]
			}),
		)
	return {
		marks,
		...(summary && { summary }),
		tokens: config.context?.tokens ?? CONTEXT_TOKENS,
		limits: own(limitOf),
		factors: own((model) => factors.get(modelKey(model))),
	}
}

/** Maximum tokens of a request, as learned from answers and as stated by the server; the smaller one. */
function limitOf(model: ModelOrder): number | undefined {
	const learned = limits.get(modelKey(model))
	const stated = statedWindows.get(settingsOf(model))
	if (!stated || stated.until < Date.now()) return learned
	const nothing = { tokens: Infinity, limits: {}, factors: {} }
	return Math.min(learned ?? Infinity, budgetFor({ ...model, context_window: stated.tokens }, nothing).tokens)
}

function settingsOf({ provider, base_url, model, context_window }: ModelOrder): string {
	return JSON.stringify([provider, base_url, model, context_window])
}

/** Updates the learned values of a model. Its limit never falls below the longest request that it accepted. `models`: of the run. */
export function learnFrom(answer: ModelAnswer, models: readonly ModelOrder[] = []): void {
	const { provider, model, estimate, usage, request_tokens = usage.input_tokens } = answer
	const key = modelKey({ provider, model })
	const longest = Math.max(longestAccepted.get(key) ?? 0, request_tokens)
	longestAccepted.set(key, longest)
	const order = models.find((one) => modelKey(one) === key)
	const limit = order && learnWindow(order, answer.window, request_tokens) ? undefined : answer.limit
	const known = limits.get(key) ?? Infinity
	const next = Math.max(longest, limit === undefined ? known * RAISE : Math.min(limit, known))
	if (next < UNLIMITED_TOKENS) limits.set(key, next)
	else limits.delete(key)
	if (estimate !== undefined)
		factors.set(key, corrected(factors.get(key) ?? familyFactor(model), estimate, request_tokens))
}

/** Whether the server has stated a window, which applies instead of a learned limit. A longer request that it accepted disproves it. */
function learnWindow(order: ModelOrder, stated: number | undefined, accepted: number): boolean {
	const key = settingsOf(order)
	if (stated !== undefined) statedWindows.set(key, { tokens: stated, until: Date.now() + STATED_MS })
	if (accepted > (statedWindows.get(key)?.tokens ?? Infinity)) statedWindows.delete(key)
	return stated !== undefined && statedWindows.has(key)
}
