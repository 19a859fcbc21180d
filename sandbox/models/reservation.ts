import type { ModelOrder, Reservation } from '../../core/protocol.ts'
import { longestAnswer } from '../context/budget.ts'
import { familyFactor, tokensIn } from '../context/estimate.ts'
import { costOf } from './price.ts'
import type { ModelRequest } from './provider.ts'

/** What a call may use at most: its request as estimated, and the longest answer. */
export function reservationOf(order: ModelOrder, request: ModelRequest): Reservation {
	const { provider, model, kind, prices } = order
	const { system, turns, tools } = request
	const said = turns.flatMap((turn) =>
		turn.role === 'assistant'
			? [turn.content, ...turn.tool_calls.map((call) => call.name + call.arguments)]
			: [turn.content],
	)
	const texts = [system ?? '', ...said, ...tools.map((tool) => JSON.stringify(tool))]
	const estimated = texts.reduce((sum, text) => sum + tokensIn(text), 0)
	const usage = {
		input_tokens: Math.ceil(estimated * familyFactor(model)),
		output_tokens: Math.ceil(longestAnswer(order)),
	}
	const cost = prices ? costOf(prices, usage) : kind === 'offline' ? 0 : undefined
	return { provider, model, tokens: usage.input_tokens + usage.output_tokens, ...(cost !== undefined && { cost }) }
}
