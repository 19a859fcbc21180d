/**
 * Fits a request into a model's window. Pure: the same records give the same request.
 *
 * The newest turns stay whole; of older ones the results of tools become stubs; still older ones are replaced by what is said
 * about them. Where something is cut, so much is cut that many turns fit before the next cut, and the marks say where: up to
 * then every request begins as the one before. Nothing is deleted: what is left out can be read by its id.
 */
import type { ChatMessage, ContextMarks as Marks, ContextSummary as Summary, ToolSpec } from '../../core/protocol.ts'
import type { ModelRequest, Turn } from '../models/provider.ts'
import { tokensIn } from './estimate.ts'
import { abridged, stubOf } from './shorten.ts'
import type { Origin } from './shorten.ts'

export interface FitInput extends ModelRequest {
	/** As many of the first turns of `turns` are earlier ones; with their ids. */
	history: readonly ChatMessage[]
	/** The run that goes on. */
	run_id: string
	marks: Marks
	summary?: Summary | undefined
	/** Tokens that the request may take. */
	budget: number
	/** The part of the budget above which is cut; 1: only where it would not fit. */
	fill: number
	/** What an estimated token counts at the provider. */
	factor: number
}

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

export const NO_MARKS: Marks = { from: null, whole: null, omitted: [], earlier: null }

/** After a cut: the part of the room for earlier turns that they fill, the part of that for whole ones, and the part for what is said about the rest. */
const AFTER_CUT = 0.35
const WHOLE = 0.7
const EARLIER = 0.12
const LINES = 30
const LINE = 100
const MESSAGE_TOKENS = 6

type Cost = (list: readonly Turn[]) => number

interface Past {
	run_id: string | undefined
	whole: readonly Turn[]
	stubs: readonly Turn[]
	tokens: number
	stubTokens: number
}

export function fit(input: FitInput): Fitted {
	const { system, tools, turns, history, budget, fill, factor, run_id } = input
	const cost = (list: readonly Turn[]): number =>
		Math.ceil(list.reduce((sum, turn) => sum + tokensOf(turn), 0) * factor)
	const past = pastOf(turns.slice(0, history.length), history, cost)
	let current: readonly Turn[] = turns.slice(history.length)
	const instructions = Math.ceil(tokensIn(system ?? '') * factor)
	const described = Math.ceil(tools.reduce((sum, tool) => sum + tokensOfTool(tool), 0) * factor)
	const fixed = instructions + described

	let marks = input.marks
	let [from, whole] = placesOf(past, marks)
	const shownCost = (): number =>
		past.reduce((sum, turn, at) => sum + (at < from ? 0 : at < whole ? turn.stubTokens : turn.tokens), 0)
	const earlierCost = (): number =>
		marks.earlier === null ? 0 : Math.ceil(tokensIn(marks.earlier) * factor) + MESSAGE_TOKENS

	const available = Math.max(0, budget * fill - fixed - cost(current))
	if (fixed + earlierCost() + shownCost() + cost(current) > budget * fill && past.length > from) {
		const room = available * AFTER_CUT
		let used = 0
		whole = past.length
		while (whole > from && used + (past[whole - 1]?.tokens ?? 0) <= room * WHOLE) used += past[--whole]?.tokens ?? 0
		let first = whole
		while (first > from && used + (past[first - 1]?.stubTokens ?? 0) <= room) used += past[--first]?.stubTokens ?? 0
		from = first
		marks = marksAt(past, from, whole, input, (available * EARLIER) / factor)
	}
	if (fixed + earlierCost() + shownCost() + cost(current) > budget) {
		from = whole = past.length
		marks = marksAt(past, from, whole, input, (available * EARLIER) / factor)
	}
	const room = budget - fixed - earlierCost() - shownCost()
	if (cost(current) > room) current = shrunk(current, room, run_id, cost)

	const shown = past.slice(from).map((turn, at) => ({ ...turn, isWhole: from + at >= whole }))
	const items: FitItem[] = [
		{ kind: 'instructions', tokens: instructions },
		{ kind: 'tools', tokens: described },
		...(marks.earlier === null ? [] : [{ kind: 'earlier' as const, tokens: earlierCost() }]),
		...shown.map(({ run_id: id, isWhole, tokens, stubTokens }): FitItem => ({
			kind: 'turn',
			...(id !== undefined && { run_id: id }),
			shown: isWhole ? 'whole' : 'stubs',
			tokens: isWhole ? tokens : stubTokens,
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
				...shown.flatMap((turn) => (turn.isWhole ? turn.whole : turn.stubs)),
				...current,
			],
		},
		marks,
		items,
		tokens,
		fits: tokens <= budget,
	}
}

/** A turn begins with what a user said. */
function pastOf(turns: readonly Turn[], history: readonly ChatMessage[], cost: Cost): Past[] {
	const past: { run_id: string | undefined; whole: Turn[]; stubs: Turn[] }[] = []
	for (const [at, turn] of turns.entries()) {
		const told = history[at]
		if (turn.role === 'user' || past.length === 0)
			past.push({ run_id: told?.role === 'user' ? told.run_id : undefined, whole: [], stubs: [] })
		const last = past.at(-1)
		const result_id = told?.role === 'tool' ? told.result_id : undefined
		last?.whole.push(turn)
		last?.stubs.push(stubIn(turn, { run_id: last.run_id, result_id }))
	}
	return past.map((one) => ({ ...one, tokens: cost(one.whole), stubTokens: cost(one.stubs) }))
}

function placesOf(past: readonly Past[], { from, whole }: Marks): [number, number] {
	const placeOf = (id: string | null): number =>
		id === null ? 0 : past.findIndex(({ run_id }) => run_id !== undefined && run_id >= id)
	const [first, second] = [placeOf(from), placeOf(whole)].map((at) => (at < 0 ? past.length : at)) as [number, number]
	return [first, Math.max(first, second)]
}

function marksAt(
	past: readonly Past[],
	from: number,
	whole: number,
	{ marks, summary, run_id }: FitInput,
	most: number,
): Marks {
	const idOf = (at: number): string => past[at]?.run_id ?? run_id
	const begun = placesOf(past, marks)[0]
	const lines = past
		.slice(begun, from)
		.flatMap(({ run_id: id, whole: [prompt] }) =>
			id === undefined
				? []
				: [{ run_id: id, line: (prompt?.content ?? '').slice(0, LINE).toWellFormed().replaceAll(/\s+/g, ' ') }],
		)
	const omitted = [...marks.omitted, ...lines]
		.filter((one) => summary === undefined || one.run_id > summary.through)
		.slice(-LINES)
	return {
		from: idOf(from),
		whole: idOf(whole),
		omitted,
		earlier: earlierOf(
			omitted,
			summary,
			most,
			past.every((one) => one.run_id !== undefined),
		),
	}
}

/** `most`: about how many tokens it may take. */
function earlierOf(omitted: Marks['omitted'], summary: Summary | undefined, most: number, isKept: boolean): string {
	if (!isKept) return '<earlier>\nEarlier messages are left out here, since they are too long.\n</earlier>'
	const list = omitted.map(({ run_id, line }) => `- ${run_id}: ${line}`)
	const told = summary ? summary.text.slice(0, Math.floor(most * 3)).toWellFormed() : ''
	while (list.length > 0 && tokensIn(list.join('\n')) > most) list.shift()
	return [
		'<earlier>',
		'What was said before the following turns is kept, and not shown here. conversation_search finds it, conversation_read reads it.',
		...(told === '' ? [] : ['Summary:', told]),
		...(list.length === 0 ? [] : ['Turns that it does not cover, by run_id, with how they begin:', ...list]),
		'</earlier>',
	].join('\n')
}

/** Of the run itself: first its older results, then whatever is longest. */
function shrunk(turns: readonly Turn[], room: number, run_id: string, cost: Cost): readonly Turn[] {
	const originOf = (turn: Turn): Origin => ({
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
	const note = `[Earlier steps of this work are left out here; read them with conversation_read ${JSON.stringify({ run_id })}]`
	const latest = turns.findLastIndex(({ role }) => role === 'assistant')
	let rest = turns.slice(begin)
	for (let at = begin + 1; at <= latest && cost([...head, ...rest]) + MESSAGE_TOKENS * 10 > room; at++)
		if (turns[at]?.role === 'assistant') rest = turns.slice(at)
	return rest.length === turns.length - begin ? turns : [...head, { role: 'user', content: note }, ...rest]
}

const stubs = new WeakMap<Turn, Turn>()

/** A message of an earlier turn always has the same one. */
function stubIn(turn: Turn, origin: Origin): Turn {
	const known = stubs.get(turn) ?? stubOf(turn, origin)
	stubs.set(turn, known)
	return known
}

const counted = new WeakMap<object, number>()

/** By the estimate, kept with the message. */
export function tokensOf(turn: Turn | ChatMessage): number {
	let tokens = counted.get(turn)
	if (tokens === undefined) {
		tokens = tokensIn(turn.content) + MESSAGE_TOKENS
		if (turn.role === 'assistant')
			for (const call of turn.tool_calls ?? [])
				tokens += tokensIn(call.name) + tokensIn(call.arguments) + MESSAGE_TOKENS * 2
		if (turn.role === 'assistant' && turn.provider_state) tokens += tokensIn(turn.provider_state.data)
		counted.set(turn, tokens)
	}
	return tokens
}

function tokensOfTool(tool: ToolSpec): number {
	let tokens = counted.get(tool)
	if (tokens === undefined) {
		tokens = tokensIn(JSON.stringify([tool.name, tool.description, tool.parameters])) + MESSAGE_TOKENS * 2
		counted.set(tool, tokens)
	}
	return tokens
}
