/** The earlier turns of a conversation with their tokens, as whole turns and as stubs. */
import type { ChatMessage } from '../../core/protocol.ts'
import type { ContextMarks as Marks } from '../order.ts'
import type { Turn } from '../models/provider.ts'
import { stubOf } from './shorten.ts'
import type { ResultOrigin } from './shorten.ts'

/** Tokens of messages, as their provider counts them. */
export type Cost = (list: readonly Turn[]) => number

/** `history`: the same messages with their ids. A turn begins with a message of a user. */
export function pastOf(turns: readonly Turn[], history: readonly ChatMessage[], cost: Cost): PastTurn[] {
	const past: PastTurn[] = []
	for (let from = 0; from < turns.length;) {
		let to = from + 1
		while (to < turns.length && turns[to]?.role !== 'user') to++
		past.push(new PastTurn(turns.slice(from, to), history.slice(from, to), cost))
		from = to
	}
	return past
}

export class PastTurn {
	/** Undefined if the caller of the run sent the history. */
	readonly run_id: string | undefined
	readonly whole: readonly Turn[]
	readonly tokens: number
	readonly #messages: readonly ChatMessage[]
	readonly #cost: Cost
	#stubs: readonly Turn[] | undefined
	#stubTokens: number | undefined

	constructor(whole: readonly Turn[], messages: readonly ChatMessage[], cost: Cost) {
		const [first] = messages
		this.run_id = first?.role === 'user' ? first.run_id : undefined
		this.whole = whole
		this.tokens = cost(whole)
		this.#messages = messages
		this.#cost = cost
	}

	/** Made on first access: most turns are shown completely. */
	get stubs(): readonly Turn[] {
		return (this.#stubs ??= this.whole.map((turn, at) => {
			const message = this.#messages[at]
			const result_id = message?.role === 'tool' ? message.result_id : undefined
			return stubIn(turn, { run_id: this.run_id, result_id })
		}))
	}

	get stubTokens(): number {
		return (this.#stubTokens ??= this.#cost(this.stubs))
	}
}

/** The indexes of the first shown turn and of the first whole one. */
export function placesOf(past: readonly PastTurn[], { from, whole }: Marks): [from: number, whole: number] {
	const placeOf = (id: string | null): number =>
		id === null ? 0 : past.findIndex(({ run_id }) => run_id !== undefined && run_id >= id)
	const [first, second] = [placeOf(from), placeOf(whole)].map((at) => (at < 0 ? past.length : at)) as [number, number]
	return [first, Math.max(first, second)]
}

const stubs = new WeakMap<Turn, Turn>()

/** Returns the same stub for the same message. */
function stubIn(turn: Turn, origin: ResultOrigin): Turn {
	const known = stubs.get(turn) ?? stubOf(turn, origin)
	stubs.set(turn, known)
	return known
}
