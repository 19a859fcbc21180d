import type { Reservation } from '../../core/protocol.ts'
import type { ModelOrder } from '../order.ts'
import { longestAnswer } from '../context/budget.ts'
import { familyFactor, tokensIn } from '../context/estimate.ts'
import { tokensOf, tokensOfTool } from '../context/message-tokens.ts'
import { knownCost } from './price.ts'
import type { ModelRequest } from './provider.ts'

/** What a call may use at most: its request as estimated, and the longest answer. */
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
