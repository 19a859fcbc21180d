/** Asks the models of an order, each with a request that fits into its window. */
import { Fault } from '../../core/errors.ts'
import type { RunOrder } from '../../core/protocol.ts'
import type { ContextOrder, ModelOrder } from '../order.ts'
import type { ModelIo } from '../ask-model.ts'
import type { ModelReply, ModelRequest } from '../models/provider.ts'
import { failed } from '../models/provider.ts'
import { toldLimit } from '../models/too-long.ts'
import { budgetFor, modelKey } from './budget.ts'
import { fit } from './fit.ts'
import type { Fitted } from './fit.ts'

/** As `askModels`; makes the request for one of the models. */
export type AskEach = (requestFor: (model: ModelOrder) => ModelRequest, io: ModelIo) => Promise<ModelReply>

/** What is left of a request that was too long, where the model does not say how long one may be. */
const SHRINK = 0.6
/** Shorter requests in place of one that was too long. */
const SHORTER = 3

/**
 * A model that finds its request too long all the same is asked again with shorter ones, each after `context.shrunk`. From
 * then on that limit holds for the whole order, and the answer reports it for later ones. Only a request that exceeds the model's
 * window is not sent: what was learned about a model may come from text that is unlike this one.
 */
export async function askFitted(
	order: RunOrder,
	request: ModelRequest,
	io: ModelIo,
	ask: AskEach,
): Promise<ModelReply> {
	const { context } = order
	if (!context) return ask(() => request, io)
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
		// Where it was cut, later requests of the run are cut too, until that is too long again.
		if (model === order.models[0]) context.marks = fitted.marks
		if (exceedsWindow && model.kind !== 'offline') throw tooLong(fitted.items, budgetFor(model, context).tokens)
		estimates.set(modelKey(model), estimate)
		return { ...fitted.request, ...(request.form && { form: request.form }) }
	}
	const askOnce = async (): Promise<ModelReply> => {
		try {
			return await ask(requestFor, io)
		} catch (error) {
			if (error instanceof Fault) return failed(error.code as 'model_rejected', error.message)
			throw error
		}
	}
	let reply = await askOnce()
	const model = order.models.at(-1)
	let limit: number | undefined
	for (let left = SHORTER; left > 0 && model && isTooLong(reply) && !io.signal.aborted; left--) {
		const before = estimates.get(modelKey(model))
		if (before === undefined) break // it was not asked
		limit = shorter(model, context, before, reply.failure.message)
		context.limits[modelKey(model)] = limit
		if (fitFor(model).estimate >= before) break
		io.emit({ event_type: 'context.shrunk', payload: { provider: model.provider, model: model.model, tokens: limit } })
		reply = await askOnce()
	}
	if (reply.status === 'failed') return reply
	const { answer } = reply
	const estimate = estimates.get(modelKey(answer))
	const isOfRefused = model && modelKey(model) === modelKey(answer)
	return {
		...reply,
		answer: {
			...answer,
			...(estimate !== undefined && { estimate }),
			...(limit !== undefined && isOfRefused && { limit }),
		},
	}
}

function isTooLong(reply: ModelReply): reply is Extract<ModelReply, { status: 'failed' }> {
	return reply.status === 'failed' && reply.failure.code === 'context_too_long'
}

/** `estimate`: of the request that was too long. */
function shorter(model: ModelOrder, context: ContextOrder, estimate: number, message: string): number {
	const { tokens, factor } = budgetFor(model, context)
	const most = Math.min(tokens, estimate * factor) * SHRINK
	const known = toldLimit(message)
	return Math.floor(Math.min(most, known === undefined ? Infinity : known * 0.8))
}

function tooLong(items: readonly { kind: string; tokens: number }[], budget: number): Fault {
	const parts = items.filter(({ kind }) => kind !== 'turn').map(({ kind, tokens }) => `${kind} ${tokens}`)
	return new Fault(
		'context_too_long',
		`the request takes more than the ${budget} tokens that fit: about ${parts.join(', ')}; use a model with a larger window, set context_window if it has one, or give the agent a shorter persona or fewer tools`,
	)
}
