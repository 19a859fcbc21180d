/** Asks the models of an order, each with a request that fits into its window. */
import { Fault } from '../../core/errors.ts'
import type { ModelAnswer, RunOrder, Usage } from '../../core/protocol.ts'
import type { ContextOrder, ModelOrder } from '../order.ts'
import type { ModelIo } from '../ask-model.ts'
import { answerBound } from '../models/answer-bound.ts'
import type { ModelReply, ModelRequest } from '../models/provider.ts'
import { failed } from '../models/provider.ts'
import type { StatedLimit } from '../models/too-long.ts'
import { budgetFor, corrected, longestAnswer, modelKey } from './budget.ts'
import { windowOf } from './estimate.ts'
import { fit } from './fit.ts'
import type { FitItem, Fitted } from './fit.ts'

/** As `askModels`. `requestFor` returns the request for one of the models. */
type AskEach = (requestFor: (model: ModelOrder) => ModelRequest) => Promise<ModelReply>

/** The factor by which a request that was too long is shortened, if the server does not state a limit. */
const SHRINK = 0.6
/** Limit of shorter requests after one that was too long. */
const SHORTER = 3

/**
 * If a model still refuses its request as too long, or its window ends during the answer, it is asked again with shorter requests,
 * each after `context.shrunk`. The new limit then applies to the whole order, and the answer reports it for later orders. A
 * request is not sent only if it exceeds the model's window: a learned limit may come from different text.
 */
export async function askFitted(
	order: RunOrder,
	request: ModelRequest,
	io: ModelIo,
	ask: AskEach,
): Promise<ModelReply> {
	const { context } = order
	if (!context) return ask(() => request)
	const estimates = new Map<string, number>()
	const fitFor = (model: ModelOrder): { fitted: Fitted; estimate: number; exceedsWindow: boolean } => {
		const { tokens: budget, factor } = budgetFor(model, context)
		const { history, run_id } = order
		const { marks, summary } = context
		const fitted = fit({ ...request, history, run_id, marks, summary, budget, fill: 1, factor })
		const estimate = Math.ceil(fitted.tokens / factor)
		const unlearned = budgetFor(model, { ...context, limits: {}, factors: {} })
		const exceedsWindow = !fitted.fits && estimate * Math.min(factor, unlearned.factor) > unlearned.tokens
		return { fitted, estimate, exceedsWindow }
	}
	const requestFor = (model: ModelOrder): ModelRequest => {
		const { fitted, estimate, exceedsWindow } = fitFor(model)
		// Later requests of the run are cut at the same place, until they are too long again.
		if (model === order.models[0]) context.marks = fitted.marks
		if (exceedsWindow && model.kind !== 'offline') throw tooLong(fitted.items(), budgetFor(model, context).tokens)
		estimates.set(modelKey(model), estimate)
		return { ...fitted.request(), ...(request.form && { form: request.form }) }
	}
	const askOnce = async (): Promise<ModelReply> => {
		try {
			return await ask(requestFor)
		} catch (error) {
			if (error instanceof Fault) return failed(error.code as 'model_rejected', error.message)
			throw error
		}
	}
	let reply = await askOnce()
	/** For models that refused this request, or whose answer was cut off. */
	const learned = new Map<string, Pick<ModelAnswer, 'limit' | 'window'>>()
	const written = new Map<string, number>()
	for (let left = SHORTER; left > 0 && !io.signal.aborted; left--) {
		const model = modelOf(reply, order.models)
		const exceeded = model && exceededBy(reply, model)
		if (!exceeded) break
		const key = modelKey(model)
		const before = estimates.get(key)
		if (before === undefined) break // it was not asked
		// The answer did not get longer after a shorter request, so the server limits answers.
		if (exceeded.written !== undefined && exceeded.written <= (written.get(key) ?? 0)) break
		if (exceeded.written !== undefined) written.set(key, exceeded.written)
		const limit = shorter(model, context, before, exceeded)
		learned.set(key, { limit, ...(exceeded.stated && { window: exceeded.stated.window }) })
		context.limits[key] = limit
		if (fitFor(model).estimate >= before) break
		io.emit({ event_type: 'context.shrunk', payload: { provider: model.provider, model: model.model, tokens: limit } })
		reply = await askOnce()
	}
	const last = order.models.at(-1)
	if (reply.status === 'failed')
		return last && estimates.has(modelKey(last)) ? explained(reply, fitFor(last).fitted) : reply
	const { answer } = reply
	const estimate = estimates.get(modelKey(answer))
	return {
		...reply,
		answer: { ...answer, ...(estimate !== undefined && { estimate }), ...learned.get(modelKey(answer)) },
	}
}

/** The model that answered. If all failed, the last one: the code of the failure is from it. */
function modelOf(reply: ModelReply, models: readonly ModelOrder[]): ModelOrder | undefined {
	if (reply.status === 'failed') return models.at(-1)
	const key = modelKey(reply.answer)
	return models.find((model) => modelKey(model) === key)
}

interface Exceeded {
	/** The limit that the server stated when it refused the request. */
	stated?: StatedLimit | undefined
	/** Tokens of the request and of the answer that was cut off. */
	window?: number
	/** Tokens of the answer that was cut off. */
	written?: number
}

/** Undefined if the request and the answer fit. */
function exceededBy(reply: ModelReply, model: ModelOrder): Exceeded | undefined {
	if (reply.status === 'failed' && reply.failure.code === 'context_too_long') return { stated: reply.failure.stated }
	// Some servers refuse no request, and cut off the answer at the end of the window.
	const used = reply.status === 'failed' ? reply.failure.is_cut && reply.failure.usage : blankUsage(reply.answer)
	if (!used || answerBound(model) !== undefined || used.output_tokens >= longestAnswer(model)) return undefined
	return { window: used.input_tokens + used.output_tokens, written: used.output_tokens }
}

/** The usage of an answer that reached its maximum length before any text; undefined for other answers. */
function blankUsage({ content, tool_calls, finish_reason, usage }: ModelAnswer): Usage | undefined {
	return finish_reason === 'length' && content.trim() === '' && tool_calls.length === 0 ? usage : undefined
}

/** The new limit in tokens. `estimate`: of the request that was too long. */
function shorter(model: ModelOrder, context: ContextOrder, estimate: number, { stated, window }: Exceeded): number {
	if (stated) {
		const key = modelKey(model)
		const { factor } = budgetFor(model, context)
		context.factors[key] = Math.max(factor, corrected(factor, estimate, stated.request ?? 0))
		const context_window = Math.min(stated.window, model.context_window ?? windowOf(model.model))
		const within = budgetFor({ ...model, context_window }, context)
		if (within.tokens < estimate * within.factor) return within.tokens
	}
	const { tokens, factor } = budgetFor(model, context)
	const most = Math.min(tokens, estimate * factor) * SHRINK
	return Math.floor(Math.min(most, window === undefined ? Infinity : window * 0.8))
}

function tooLong(items: readonly FitItem[], budget: number): Fault {
	return new Fault(
		'context_too_long',
		`the request takes more than the ${budget} tokens that fit: about ${partsIn(items)}; use a model with a larger window, set context_window if it has one, or give the agent a shorter persona or fewer tools`,
	)
}

/** Adds the sizes of the parts that cannot be omitted to the error of a server that accepts even less. */
function explained(reply: Extract<ModelReply, { status: 'failed' }>, { fits, items }: Fitted): ModelReply {
	const { code, message, ...failure } = reply.failure
	if (code !== 'context_too_long' || fits) return reply
	const advice = 'give the agent a shorter persona or fewer tools'
	return failed(code, `${message}; of the request, about ${partsIn(items())} cannot be omitted: ${advice}`, failure)
}

function partsIn(items: readonly FitItem[]): string {
	return items.flatMap(({ kind, tokens }) => (kind === 'turn' || tokens === 0 ? [] : `${kind} ${tokens}`)).join(', ')
}
