/** How many tokens a request to a model may have, as its provider counts them. */
import type { ContextOrder, ModelOrder } from '../order.ts'
import { answerBound } from '../models/answer-bound.ts'
import { familyFactor, windowOf } from './estimate.ts'

/** The part of the window that stays free for errors of the estimate. */
const MARGIN = 0.04
/** Tokens kept for an answer without a configured limit. */
const ANSWER = 4_096

/** The key of a model's limits and factors. */
export function modelKey({ provider, model }: Pick<ModelOrder, 'provider' | 'model'>): string {
	return `${provider}/${model}`
}

/** `tokens`: the most that a request may have, as the estimate times `factor`. */
export function budgetFor(model: ModelOrder, context: Pick<ContextOrder, 'tokens' | 'limits' | 'factors'>) {
	const window = model.context_window ?? windowOf(model.model)
	const answer = longestAnswer(model)
	const known = context.limits[modelKey(model)] ?? Infinity
	const tokens = Math.min((window - answer) * (1 - MARGIN), known, context.tokens)
	return { tokens: Math.floor(tokens), factor: context.factors[modelKey(model)] ?? familyFactor(model.model) }
}

/** The most tokens that an answer may have. */
export function longestAnswer(order: ModelOrder): number {
	const window = order.context_window ?? windowOf(order.model)
	return Math.min(answerBound(order) ?? Math.min(ANSWER, window / 8), window / 2)
}

/**
 * The factor after an answer. It rises at once if the provider counted more, and falls slowly if it counted less, since the next
 * request may contain other text.
 */
export function corrected(factor: number, estimate: number, reported: number): number {
	if (!(estimate > 0) || !(reported > 0)) return factor
	const seen = Math.min(4, Math.max(0.5, (reported / estimate) * 1.02))
	return seen >= factor ? seen : factor * 0.8 + seen * 0.2
}
