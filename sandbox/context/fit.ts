/**
 * Fits a request into a model's window. Pure: the same records result in the same request.
 *
 * The newest turns stay complete. In older ones, the results of tools become stubs. Still older ones are replaced by a summary or a
 * list. A cut removes so much that many turns fit before the next cut, and the marks store its place. Until then, every request
 * begins like the previous one. Nothing is deleted: turns that are omitted can be read by their ids.
 */
import type { ContextMarks as Marks } from '../order.ts'
import type { ModelRequest, Turn } from '../models/provider.ts'
import { cutAt } from './cut.ts'
import { caughtUp, marksAt } from './earlier.ts'
import { measure } from './measure.ts'
import type { FitInput } from './measure.ts'
import { MESSAGE_TOKENS } from './message-tokens.ts'
import type { Cost } from './past.ts'
import { abridged, stubOf } from './shorten.ts'
import type { ResultOrigin } from './shorten.ts'

export interface FitItem {
	kind: 'instructions' | 'tools' | 'earlier' | 'turn' | 'prompt'
	run_id?: string
	/** Of a turn: `stubs` if results or long texts are shortened. */
	shown?: 'whole' | 'stubs'
	tokens: number
}

export interface Fitted {
	marks: Marks
	/** Built when called, like `items`: often only the marks are needed. */
	request(): ModelRequest
	items(): FitItem[]
	/** By the estimate. */
	tokens: number
	/** False if the instructions, the tools and the shortest prompt together are too long. */
	fits: boolean
}

export function fit(input: FitInput): Fitted {
	const { system, tools, budget, fill, run_id, summary, unread } = input
	const { cost, past, instructions, tools: described, shown, earlier, available, most, ...begun } = measure(input)
	let { current, from, whole } = begun
	const fixed = instructions + described
	const marksInput = { marks: input.marks, unread, summary, run_id, most }
	let marks = caughtUp({ marks: input.marks, summary, most })
	const used = (): number => fixed + earlier(marks) + shown(from, whole) + cost(current)
	if (used() > fixed + (budget - fixed) * fill && past.length > from) {
		;[from, whole] = cutAt(past, from, available, summary)
		marks = marksAt(past, from, whole, marksInput)
	}
	if (used() > budget) {
		from = whole = past.length
		marks = marksAt(past, from, whole, marksInput)
	}
	const room = budget - fixed - earlier(marks) - shown(from, whole)
	if (cost(current) > room) current = shrunk(current, room, run_id, cost)

	const tokens = used()
	const isWhole = (at: number): boolean => from + at >= whole
	return {
		marks,
		tokens,
		fits: tokens <= budget,
		request() {
			const turns: Turn[] = marks.earlier === null ? [] : [{ role: 'user', content: marks.earlier }]
			for (const [at, turn] of past.slice(from).entries()) turns.push(...(isWhole(at) ? turn.whole : turn.stubs))
			return { system, tools, turns: [...turns, ...current] }
		},
		items(): FitItem[] {
			return [
				{ kind: 'instructions', tokens: instructions },
				{ kind: 'tools', tokens: described },
				...(marks.earlier === null ? [] : [{ kind: 'earlier' as const, tokens: earlier(marks) }]),
				...past.slice(from).map((turn, at): FitItem => ({
					kind: 'turn',
					...(turn.run_id !== undefined && { run_id: turn.run_id }),
					shown: isWhole(at) ? 'whole' : 'stubs',
					tokens: isWhole(at) ? turn.tokens : turn.stubTokens,
				})),
				{ kind: 'prompt', tokens: cost(current) },
			]
		},
	}
}

/**
 * Shortens the current turn: its older results first, then the longest texts. `room`: the tokens that it may have. Returns the shortest
 * form if even that is longer.
 */
function shrunk(turns: readonly Turn[], room: number, run_id: string, cost: Cost): readonly Turn[] {
	const originOf = (turn: Turn): ResultOrigin => ({
		run_id,
		...(turn.role === 'tool' && /^[\w.-]{1,64}$/.test(turn.call_id) && { result_id: `${run_id}:${turn.call_id}` }),
	})
	const latest = turns.findLastIndex(({ role }) => role === 'assistant')
	const base = turns.map((turn, at) => (turn.role === 'tool' && at < latest ? stubOf(turn, originOf(turn)) : turn))
	let left = base
	for (let limit = 32_768; cost(left) > room && limit >= 128; limit /= 2)
		left = base.map((turn) => abridged(turn, limit, originOf(turn)))
	return cost(left) > room ? withoutSteps(left, room, run_id, cost) : left
}

/** Leaves out the oldest answers of the run with their results; the prompt and the latest answer stay. */
function withoutSteps(turns: readonly Turn[], room: number, run_id: string, cost: Cost): readonly Turn[] {
	const begin = turns.findIndex(({ role }) => role === 'assistant')
	if (begin < 0) return turns
	const head = turns.slice(0, begin)
	const note = `[Earlier steps of this work are omitted here; read them with conversation_read ${JSON.stringify({ run_id })}]`
	const latest = turns.findLastIndex(({ role }) => role === 'assistant')
	let rest = turns.slice(begin)
	for (let at = begin + 1; at <= latest && cost([...head, ...rest]) + MESSAGE_TOKENS * 10 > room; at++)
		if (turns[at]?.role === 'assistant') rest = turns.slice(at)
	return rest.length === turns.length - begin ? turns : [...head, { role: 'user', content: note }, ...rest]
}
