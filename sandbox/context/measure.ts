/** The tokens of the parts of a request: instructions, tools, earlier turns according to the marks, and the current turn. */
import type { ChatMessage } from '../../core/protocol.ts'
import type { ContextMarks as Marks, ContextSummary as Summary } from '../order.ts'
import type { ModelRequest, Turn } from '../models/provider.ts'
import { tokensIn } from './estimate.ts'
import { MESSAGE_TOKENS, tokensOf, tokensOfTool } from './message-tokens.ts'
import { pastOf, placesOf } from './past.ts'
import type { Cost } from './past.ts'

export interface FitInput extends ModelRequest {
	/** The earlier turns with their ids; `turns` begins with the same messages. */
	history: readonly ChatMessage[]
	/** The beginnings of still earlier turns, which are not in `history`. */
	unread?: Marks['omitted']
	/** The current run. */
	run_id: string
	marks: Marks
	summary?: Summary | undefined
	/** The most tokens that the request may have. */
	budget: number
	/** The part of the budget without instructions and tools above which turns are cut; 1: only if they do not fit. */
	fill: number
	/** The provider's tokens per estimated token. */
	factor: number
}

/** The part of the room for earlier turns that a summary may fill. */
const EARLIER = 0.12

export function measure(input: FitInput) {
	const { system, tools, turns, history, budget, fill, factor, marks } = input
	const cost: Cost = (list) => Math.ceil(list.reduce((sum, turn) => sum + tokensOf(turn), 0) * factor)
	const past = pastOf(turns.slice(0, history.length), history, cost)
	const current: readonly Turn[] = turns.slice(history.length)
	const instructions = Math.ceil(tokensIn(system ?? '') * factor)
	const described = Math.ceil(tools.reduce((sum, tool) => sum + tokensOfTool(tool), 0) * factor)
	const available = Math.max(0, (budget - instructions - described) * fill - cost(current))
	const [from, whole] = placesOf(past, marks)
	return {
		cost,
		past,
		current,
		instructions,
		tools: described,
		/** Tokens of the earlier turns from `first` on: stubs up to `complete`, whole turns from there. */
		shown: (first: number, complete: number): number =>
			past.reduce((sum, turn, at) => sum + (at < first ? 0 : at < complete ? turn.stubTokens : turn.tokens), 0),
		/** Tokens of the text that replaces earlier turns. */
		earlier: ({ earlier }: Marks): number =>
			earlier === null ? 0 : Math.ceil(tokensIn(earlier) * factor) + MESSAGE_TOKENS,
		/** The places of the marks in `past`. */
		from,
		whole,
		/** Tokens for earlier turns and the text that replaces them, in a request that is filled to `fill`. */
		available,
		/** The most tokens of a summary, by the estimate. */
		most: (available * EARLIER) / factor,
	}
}
