/**
 * Fits a request into a model's window. Pure: the same records give the same request.
 *
 * The newest turns stay whole; of older ones the results of tools become stubs; still older ones are replaced by what is said
 * about them. Where something is cut, so much is cut that many turns fit before the next cut, and the marks say where: up to
 * then every request begins as the one before. Nothing is deleted: what is left out can be read by its id.
 */
import type { ContextMarks as Marks } from '../../core/protocol.ts'
import type { ModelRequest } from '../models/provider.ts'
import { shrunk } from './current.ts'
import { cutAt } from './cut.ts'
import { caughtUp, marksAt } from './earlier.ts'
import { measure } from './measure.ts'
import type { FitInput } from './measure.ts'

export interface FitItem {
	kind: 'instructions' | 'tools' | 'earlier' | 'turn' | 'prompt'
	run_id?: string
	/** Of a turn: `stubs` if results or long texts are shortened. */
	shown?: 'whole' | 'stubs'
	tokens: number
}

export interface Fitted {
	request: ModelRequest
	marks: Marks
	items: FitItem[]
	/** By the estimate. */
	tokens: number
	/** False: the instructions, the tools and the shortest prompt together are too long. */
	fits: boolean
}

export function fit(input: FitInput): Fitted {
	const { system, tools, budget, fill, run_id, summary, unread } = input
	const { cost, past, instructions, tools: described, shown, earlier, available, most, ...begun } = measure(input)
	let { current, from, whole } = begun
	const fixed = instructions + described
	const told = { marks: input.marks, unread, summary, run_id, most }
	let marks = caughtUp({ marks: input.marks, summary, most })
	const used = (): number => fixed + earlier(marks) + shown(from, whole) + cost(current)
	if (used() > budget * fill && past.length > from) {
		;[from, whole] = cutAt(past, from, available, summary)
		marks = marksAt(past, from, whole, told)
	}
	if (used() > budget) {
		from = whole = past.length
		marks = marksAt(past, from, whole, told)
	}
	const room = budget - fixed - earlier(marks) - shown(from, whole)
	if (cost(current) > room) current = shrunk(current, room, run_id, cost)

	const visible = past.slice(from).map((turn, at) => ({ turn, isWhole: from + at >= whole }))
	const items: FitItem[] = [
		{ kind: 'instructions', tokens: instructions },
		{ kind: 'tools', tokens: described },
		...(marks.earlier === null ? [] : [{ kind: 'earlier' as const, tokens: earlier(marks) }]),
		...visible.map(({ turn, isWhole }): FitItem => ({
			kind: 'turn',
			...(turn.run_id !== undefined && { run_id: turn.run_id }),
			shown: isWhole ? 'whole' : 'stubs',
			tokens: isWhole ? turn.tokens : turn.stubTokens,
		})),
		{ kind: 'prompt', tokens: cost(current) },
	]
	const tokens = items.reduce((sum, item) => sum + item.tokens, 0)
	return {
		request: {
			system,
			tools,
			turns: [
				...(marks.earlier === null ? [] : [{ role: 'user' as const, content: marks.earlier }]),
				...visible.flatMap(({ turn, isWhole }) => (isWhole ? turn.whole : turn.stubs)),
				...current,
			],
		},
		marks,
		items,
		tokens,
		fits: tokens <= budget,
	}
}
