import { roundCost } from '../../core/protocol.ts'
import type { Usage } from '../../core/protocol.ts'
import type { ModelOrder, Prices } from '../order.ts'

/** Tokens for which a price is given. */
const PER = 1_000_000

/** What a call costs for limits and reports; undefined if that is unknown. The offline provider has no price and costs nothing. */
export function knownCost({ kind, prices }: ModelOrder, usage: Usage): number | undefined {
	if (prices) return costOf(prices, usage)
	return kind === 'offline' ? 0 : undefined
}

/** The cost of one call, rounded to billionths. */
function costOf({ input, cached_input = input, output }: Prices, usage: Usage): number {
	const { input_tokens, output_tokens, cached_tokens = 0 } = usage
	const cached = Math.min(cached_tokens, input_tokens)
	return roundCost(((input_tokens - cached) * input + cached * cached_input + output_tokens * output) / PER)
}
