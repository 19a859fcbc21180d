/** What of a conversation goes into a request, and where it is cut; the worker fits each request by it. */
import type { Context } from '../../core/plugin.ts'
import type {
	Attachment,
	ChatMessage,
	ContextMarks,
	ContextOrder,
	ModelAnswer,
	ModelOrder,
	ToolSpec,
} from '../../core/protocol.ts'
import { BoundedMap } from '../../core/util/bounded-map.ts'
import { budgetFor, corrected, modelKey } from '../../sandbox/context/budget.ts'
import { familyFactor } from '../../sandbox/context/estimate.ts'
import { NO_MARKS } from '../../sandbox/context/earlier.ts'
import { fit } from '../../sandbox/context/fit.ts'
import type { Fitted } from '../../sandbox/context/fit.ts'
import type { AgentConfig } from '../agents/contract.ts'
import type { RunRecord } from './contract.ts'
import { historyOf } from './history.ts'
import { keys } from './keys.ts'

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

/** What models turned out to count and to take, as long as the gateway runs. */
const factors = new BoundedMap<string, number>(MODELS)
const limits = new BoundedMap<string, number>(MODELS)

/** Reads no more turns than fit. Where the conversation is cut anew, that is stored first. */
export async function composeContext(
	ctx: Pick<Context, 'store' | 'events'>,
	{ run, config, models, system, tools, about, prompt, attachments, since = [] }: ContextRequest,
): Promise<Composed> {
	const key = keys.marks(run.agent_uid, run.conversation)
	const stored = await ctx.store.get<ContextMarks>(key)
	const context = contextWith(config, models, stored?.value ?? NO_MARKS)
	const [first = models[0]] = models
	if (!first) throw new TypeError('a run has at least one model')
	const { tokens: budget, factor } = budgetFor(first, context)
	const most = Math.max(...models.map((model) => budgetFor(model, context).tokens / budgetFor(model, context).factor))
	const history = await historyOf(ctx, run, { from: context.marks.from, tokens: most })
	const fitted = fit({
		system,
		tools: [...tools],
		turns: [
			...history,
			...(about === undefined ? [] : [{ role: 'user' as const, content: about }]),
			{ role: 'user' as const, content: prompt, ...(attachments && { attachments }) },
			...since,
		].map((message) => (message.role === 'assistant' ? { ...message, tool_calls: message.tool_calls ?? [] } : message)),
		history,
		// A turn to come sorts after all others.
		run_id: run.run_id ?? 'g',
		marks: context.marks,
		budget,
		fill: FILL,
		factor,
	})
	const { marks } = fitted
	if (run.run_id !== undefined && marks !== context.marks) await ctx.store.put(key, marks)
	const begin = history.findIndex((one) => one.role === 'user' && (one.run_id ?? '') >= (marks.from ?? ''))
	return { history: begin < 0 ? [] : history.slice(begin), context: { ...context, marks }, fitted, budget }
}

/** For messages that the caller sends along: these are cut for each run anew. */
export function contextWith(config: AgentConfig, models: readonly ModelOrder[], marks: ContextMarks): ContextOrder {
	const own = (map: BoundedMap<string, number>): Record<string, number> =>
		Object.fromEntries(
			models.flatMap((model) => {
				const value = map.get(modelKey(model))
				return value === undefined ? [] : [[modelKey(model), value]]
			}),
		)
	return { marks, tokens: config.context?.tokens ?? CONTEXT_TOKENS, limits: own(limits), factors: own(factors) }
}

/** Corrects the estimate for a model by what it reports. */
export function learnFactor(answer: ModelAnswer): void {
	const key = modelKey(answer)
	if (answer.estimate === undefined) return
	factors.set(
		key,
		corrected(factors.get(key) ?? familyFactor(answer.model), answer.estimate, answer.usage.input_tokens),
	)
}

/** A model refused a request as too long. */
export function learnLimit(model: string, tokens: number): void {
	limits.set(model, Math.min(tokens, limits.get(model) ?? Infinity))
}
