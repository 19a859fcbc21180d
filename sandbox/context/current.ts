/** Shortens the current turn: its older results first, then the longest texts. */
import type { Turn } from '../models/provider.ts'
import { MESSAGE_TOKENS } from './message-tokens.ts'
import type { Cost } from './past.ts'
import { abridged, stubOf } from './shorten.ts'
import type { ResultOrigin } from './shorten.ts'

/** `room`: the tokens that it may have. Returns the shortest form if even that is longer. */
export function shrunk(turns: readonly Turn[], room: number, run_id: string, cost: Cost): readonly Turn[] {
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
