/** How long a request to a model may be, and what its provider counts. */
import type { ContextOrder, ModelOrder } from '../order.ts'
import { answerBound } from '../models/answer-bound.ts'
import { familyFactor, windowOf } from './estimate.ts'

/** Left free for what an estimate gets wrong. */
const MARGIN = 0.04
/** Of an answer whose length nobody bounds. */
const ANSWER = 4_096

/** By which limits and factors of models are known. */
export function modelKey({ provider, model }: Pick<ModelOrder, 'provider' | 'model'>): string {
	return `${provider}/${model}`
}

/** `tokens`: those that a request may take, by the estimate times `factor`. */
export function budgetFor(model: ModelOrder, context: Pick<ContextOrder, 'tokens' | 'limits' | 'factors'>) {
	const window = model.context_window ?? windowOf(model.model)
	const answer = longestAnswer(model)
	const known = context.limits[modelKey(model)] ?? Infinity
	const tokens = Math.min((window - answer) * (1 - MARGIN), known, context.tokens)
	return { tokens: Math.floor(tokens), factor: context.factors[modelKey(model)] ?? familyFactor(model.model) }
}

/** Tokens that an answer may take. */
export function longestAnswer(order: ModelOrder): number {
	const window = order.context_window ?? windowOf(order.model)
	return Math.min(answerBound(order) ?? Math.min(ANSWER, window / 8), window / 2)
}

/**
 * The factor after an answer: at once higher where the provider counted more, slowly lower where it counted less, since
 * the next request may hold other text.
 */
export function corrected(factor: number, estimate: number, reported: number): number {
	if (!(estimate > 0) || !(reported > 0)) return factor
	const seen = Math.min(4, Math.max(0.5, (reported / estimate) * 1.02))
	return seen >= factor ? seen : factor * 0.8 + seen * 0.2
}
