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

/** As `askModels`; makes the request for one of the models. */
export type AskEach = (requestFor: (model: ModelOrder) => ModelRequest, io: ModelIo) => Promise<ModelReply>

/** What is left of a request that was too long, where the model does not say how long one may be. */
const SHRINK = 0.6

/**
 * A model that finds its request too long all the same is asked once more with a shorter one, after `context.shrunk`. From
 * then on that limit holds for the whole order.
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
	const requestFor = (model: ModelOrder): ModelRequest => {
		const { tokens: budget, factor } = budgetFor(model, context)
		const { history, run_id } = order
		const { marks, summary } = context
		const fitted = fit({ ...request, history, run_id, marks, summary, budget, fill: 1, factor })
		// Where it was cut, later requests of the run are cut too, until that is too long again.
		if (model === order.models[0]) context.marks = fitted.marks
		if (!fitted.fits && model.kind !== 'offline') throw tooLong(fitted.items, budget)
		estimates.set(modelKey(model), Math.ceil(fitted.tokens / factor))
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
	if (
		reply.status === 'failed' &&
		model &&
		estimates.has(modelKey(model)) &&
		reply.failure.code === 'context_too_long' &&
		!io.signal.aborted
	) {
		const tokens = shorter(model, context, reply.failure.message)
		context.limits[modelKey(model)] = tokens
		io.emit({ event_type: 'context.shrunk', payload: { provider: model.provider, model: model.model, tokens } })
		reply = await askOnce()
	}
	if (reply.status === 'failed') return reply
	const estimate = estimates.get(modelKey(reply.answer))
	return estimate === undefined ? reply : { ...reply, answer: { ...reply.answer, estimate } }
}

function shorter(model: ModelOrder, context: ContextOrder, message: string): number {
	const { tokens } = budgetFor(model, context)
	const limit = toldLimit(message)
	return Math.floor(Math.min(tokens * SHRINK, limit === undefined ? Infinity : limit * 0.8))
}

function tooLong(items: readonly { kind: string; tokens: number }[], budget: number): Fault {
	const parts = items.filter(({ kind }) => kind !== 'turn').map(({ kind, tokens }) => `${kind} ${tokens}`)
	return new Fault(
		'context_too_long',
		`the request takes more than the ${budget} tokens that fit: about ${parts.join(', ')}; use a model with a larger window, set context_window if it has one, or give the agent a shorter persona or fewer tools`,
	)
}
