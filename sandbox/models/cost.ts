/** The cost of a model call, and the most that it may use. */
import { roundCost } from '../../core/protocol.ts'
import type { Reservation, Usage } from '../../core/protocol.ts'
import type { ModelOrder } from '../order.ts'
import { longestAnswer } from '../context/budget.ts'
import { familyFactor, tokensIn } from '../context/estimate.ts'
import { tokensOf, tokensOfTool } from '../context/message-tokens.ts'
import type { ModelRequest } from './provider.ts'

/** The number of tokens to which a price applies. */
const PER = 1_000_000

/** The cost of a call for limits and reports; undefined if it is unknown. Rounded to billionths. The offline provider has no price and costs nothing. */
export function knownCost({ kind, prices }: ModelOrder, usage: Usage): number | undefined {
	if (!prices) return kind === 'offline' ? 0 : undefined
	const { input, cached_input = input, output } = prices
	const { input_tokens, output_tokens, cached_tokens = 0 } = usage
	const cached = Math.min(cached_tokens, input_tokens)
	return roundCost(((input_tokens - cached) * input + cached * cached_input + output_tokens * output) / PER)
}

/** The most that a call may use: its estimated request and the longest answer. */
export function reservationOf(order: ModelOrder, { system, turns, tools }: ModelRequest): Reservation {
	const { provider, model } = order
	let estimated = tokensIn(system ?? '')
	for (const turn of turns) estimated += tokensOf(turn)
	for (const tool of tools) estimated += tokensOfTool(tool)
	const usage = {
		input_tokens: Math.ceil(estimated * familyFactor(model)),
		output_tokens: Math.ceil(longestAnswer(order)),
	}
	const cost = knownCost(order, usage)
	return { provider, model, tokens: usage.input_tokens + usage.output_tokens, ...(cost !== undefined && { cost }) }
}
