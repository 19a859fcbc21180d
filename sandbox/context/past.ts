/** The earlier turns of a conversation with what each takes, whole and as stubs. */
import type { ChatMessage, ContextMarks as Marks } from '../../core/protocol.ts'
import type { Turn } from '../models/provider.ts'
import { stubOf } from './shorten.ts'
import type { Origin } from './shorten.ts'

/** Tokens of messages, as their provider counts them. */
export type Cost = (list: readonly Turn[]) => number

export interface PastTurn {
	/** Undefined where the caller sent the history along. */
	readonly run_id: string | undefined
	readonly whole: readonly Turn[]
	readonly tokens: number
	/** Made when they are first asked for: most turns are shown whole. */
	readonly stubs: readonly Turn[]
	readonly stubTokens: number
}

/** `history`: the same messages with their ids. A turn begins with what a user said. */
export function pastOf(turns: readonly Turn[], history: readonly ChatMessage[], cost: Cost): PastTurn[] {
	const past: { run_id: string | undefined; whole: Turn[]; told: ChatMessage[] }[] = []
	for (const [at, turn] of turns.entries()) {
		const told: ChatMessage = history[at] ?? turn
		if (turn.role === 'user' || past.length === 0)
			past.push({ run_id: told.role === 'user' ? told.run_id : undefined, whole: [], told: [] })
		const last = past.at(-1)
		last?.whole.push(turn)
		last?.told.push(told)
	}
	return past.map(({ run_id, whole, told }) => {
		let stubs: Turn[] | undefined
		const stubsNow = (): Turn[] =>
			(stubs ??= whole.map((turn, at) => {
				const message = told[at]
				return stubIn(turn, { run_id, result_id: message?.role === 'tool' ? message.result_id : undefined })
			}))
		let stubTokens: number | undefined
		return {
			run_id,
			whole,
			tokens: cost(whole),
			get stubs() {
				return stubsNow()
			},
			get stubTokens() {
				return (stubTokens ??= cost(stubsNow()))
			},
		}
	})
}

/** Where the first shown turn and the first whole one stand. */
export function placesOf(past: readonly PastTurn[], { from, whole }: Marks): [from: number, whole: number] {
	const placeOf = (id: string | null): number =>
		id === null ? 0 : past.findIndex(({ run_id }) => run_id !== undefined && run_id >= id)
	const [first, second] = [placeOf(from), placeOf(whole)].map((at) => (at < 0 ? past.length : at)) as [number, number]
	return [first, Math.max(first, second)]
}

const stubs = new WeakMap<Turn, Turn>()

/** A message of an earlier turn always has the same one. */
function stubIn(turn: Turn, origin: Origin): Turn {
	const known = stubs.get(turn) ?? stubOf(turn, origin)
	stubs.set(turn, known)
	return known
}
