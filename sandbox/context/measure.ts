/** What the parts of a request take: instructions, tools, earlier turns as they are marked, and the turn under way. */
import type { ChatMessage } from '../../core/protocol.ts'
import type { ContextMarks as Marks, ContextSummary as Summary } from '../order.ts'
import type { ModelRequest, Turn } from '../models/provider.ts'
import { tokensIn } from './estimate.ts'
import { MESSAGE_TOKENS, tokensOf, tokensOfTool } from './message-tokens.ts'
import { pastOf, placesOf } from './past.ts'
import type { Cost } from './past.ts'

export interface FitInput extends ModelRequest {
	/** As many of the first turns of `turns` are earlier ones; with their ids. */
	history: readonly ChatMessage[]
	/** Turns before these that are not shown, if there are some: how they begin. */
	unread?: Marks['omitted']
	/** The current run. */
	run_id: string
	marks: Marks
	summary?: Summary | undefined
	/** Tokens that the request may take. */
	budget: number
	/** The part of the room beside instructions and tools above which is cut; 1: only where it would not fit. */
	fill: number
	/** What an estimated token counts at the provider. */
	factor: number
}

/** The part of the room for earlier turns that a summary may take. */
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
		/** The turn under way. */
		current,
		instructions,
		tools: described,
		/** Of the earlier turns from `first` on, those from `complete` on whole. */
		shown: (first: number, complete: number): number =>
			past.reduce((sum, turn, at) => sum + (at < first ? 0 : at < complete ? turn.stubTokens : turn.tokens), 0),
		/** Of what replaces the earlier turns. */
		earlier: ({ earlier }: Marks): number =>
			earlier === null ? 0 : Math.ceil(tokensIn(earlier) * factor) + MESSAGE_TOKENS,
		/** Where the marks are. */
		from,
		whole,
		/** For earlier turns and what replaces them, if the request is filled as far as it may be. */
		available,
		/** For a summary: tokens by the estimate. */
		most: (available * EARLIER) / factor,
	}
}
