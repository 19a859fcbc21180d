/** What of a conversation goes into a request, and where it is cut; the worker fits each request by it. */
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
import { readSummary } from './summary-record.ts'
import { awaitSummary } from './under-way.ts'

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

export interface Composed {
	history: ChatMessage[]
	context: ContextOrder
	fitted: Fitted
	/** The tokens that the first model's request may take. */
	budget: number
}

/** Tokens of a request, for agents that set none: more costs more, and helps little. */
const CONTEXT_TOKENS = 100_000
/** Cut before it would not fit any more, so that the calls of the run have room. */
const FILL = 0.8
const MODELS = 1_000

/** What models turned out to count and to take, as long as the gateway runs; and the longest request that each has taken. */
const factors = new BoundedMap<string, number>(MODELS)
const limits = new BoundedMap<string, number>(MODELS)
const taken = new BoundedMap<string, number>(MODELS)
/** The windows that servers stated when they refused a request, by the settings that may change them. */
const windows = new BoundedMap<string, { tokens: number; until: number }>(MODELS)
/** A server may have been started with a larger window meanwhile; then it is asked for more once. */
const STATED_MS = 24 * 60 * 60 * 1000
/** By how much each answer raises the limit: the refused text may have been unusual, or the server takes more by now. */
const RAISE = 1.01
/** No limit from here on. */
const BOUNDLESS = 10_000_000

/** Runs at whose end their conversation may be near its limit; for its summary. */
const long = new BoundedMap<string, true>(10_000)
/** The part of the budget from which on that is so. */
const LONG = 0.35
/** How long a run waits for a summary that is being made of turns which it would not be shown otherwise. */
const WAIT_MS = 5_000

/** Reads no more turns than fit. Where the conversation is cut anew, that is stored first. */
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
		if (fitted.tokens > input.budget * LONG || marks.omitted.length > 0) long.set(run_id, true)
	}
	const { history } = input
	const begin = history.findIndex((one) => one.role === 'user' && (one.run_id ?? '') >= (marks.from ?? ''))
	const shown = begin < 0 ? [] : history.slice(begin)
	return { history: shown, context: { ...context, marks }, fitted, budget: input.budget }
}

/** Whether the conversation of this run is a long one. True once. */
export function isLong(run_id: string): boolean {
	return long.delete(run_id)
}

/** What the request is fitted from: the earlier turns that may fit, where they are cut, and the summary of those before. */
export async function contextInput(
	ctx: Pick<Context, 'store' | 'events'>,
	{ run, config, models, system, tools, about, prompt, attachments, since = [] }: ContextRequest,
): Promise<{ input: FitInput; context: ContextOrder }> {
	const [stored, summary] = await Promise.all([
		ctx.store.getShared<ContextMarks>(keys.marks(run.agent_uid, run.conversation)),
		config.context?.summary === false ? undefined : readSummary(ctx.store, run.agent_uid, run.conversation),
	])
	const context = contextWith(config, models, stored?.value ?? NO_MARKS, summary)
	const [first = models[0]] = models
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
		// A turn to come sorts after all others.
		run_id: run.run_id ?? 'g',
		marks,
		summary,
		budget,
		fill: FILL,
		factor,
	}
	return { input, context }
}

/** For messages that the caller sends along: these are cut for each run anew. */
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

/** What was learned of a model, and what its server has stated. */
function limitOf(model: ModelOrder): number | undefined {
	const learned = limits.get(modelKey(model))
	const stated = windows.get(settingsOf(model))
	if (!stated || stated.until < Date.now()) return learned
	const nothing = { tokens: Infinity, limits: {}, factors: {} }
	return Math.min(learned ?? Infinity, budgetFor({ ...model, context_window: stated.tokens }, nothing).tokens)
}

function settingsOf({ provider, base_url, model, context_window }: ModelOrder): string {
	return JSON.stringify([provider, base_url, model, context_window])
}

/** Corrects what is known of a model by its answer. What it has taken before, it takes again. `models`: of the run. */
export function learnFrom(answer: ModelAnswer, models: readonly ModelOrder[] = []): void {
	const { provider, model, estimate, usage, request_tokens = usage.input_tokens } = answer
	const key = modelKey({ provider, model })
	const longest = Math.max(taken.get(key) ?? 0, request_tokens)
	taken.set(key, longest)
	const order = models.find((one) => modelKey(one) === key)
	const limit = order && learnWindow(order, answer.window, request_tokens) ? undefined : answer.limit
	const known = limits.get(key) ?? Infinity
	const next = Math.max(longest, limit === undefined ? known * RAISE : Math.min(limit, known))
	if (next < BOUNDLESS) limits.set(key, next)
	else limits.delete(key)
	if (estimate !== undefined)
		factors.set(key, corrected(factors.get(key) ?? familyFactor(model), estimate, request_tokens))
}

/** Whether the server has stated a window, which applies instead of a learned limit. */
function learnWindow(order: ModelOrder, stated: number | undefined, taken: number): boolean {
	const key = settingsOf(order)
	if (stated !== undefined) windows.set(key, { tokens: stated, until: Date.now() + STATED_MS })
	if (taken > (windows.get(key)?.tokens ?? Infinity)) windows.delete(key)
	return stated !== undefined && windows.has(key)
}
