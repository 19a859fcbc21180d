/** Decides where a conversation that has become too long is cut, and which turns leave its window next. */
import type { ContextSummary as Summary } from '../order.ts'
import { notCovered } from './earlier.ts'
import { measure } from './measure.ts'
import type { FitInput } from './measure.ts'
import type { PastTurn } from './past.ts'

/** After a cut: the part of the room that earlier turns fill, and the part of that for whole turns. */
const AFTER_CUT = 0.35
const WHOLE = 0.7
/** If a summary exists already, earlier turns may fill this much, so that the cut is directly after the summary. */
const BEHIND_SUMMARY = 0.65
/** Of the budget without instructions and tools: the part above which a summary is made ahead, and the part that it leaves to turns. */
const AHEAD = 0.6
const LEFT = 0.3

/** Cuts so much that many turns fit before the next cut; directly after the summary, if that leaves enough room. */
export function cutAt(
	past: readonly PastTurn[],
	begin: number,
	available: number,
	summary: Summary | undefined,
): [from: number, whole: number] {
	const room = available * AFTER_CUT
	let used = 0
	let whole = past.length
	while (whole > begin && used + (past[whole - 1]?.tokens ?? 0) <= room * WHOLE) used += past[--whole]?.tokens ?? 0
	let from = whole
	while (from > begin && used + (past[from - 1]?.stubTokens ?? 0) <= room) used += past[--from]?.stubTokens ?? 0
	const covered = summary ? past.findLastIndex(({ run_id = '~' }) => run_id <= summary.through) + 1 : 0
	if (covered <= begin || covered >= from) return [from, whole]
	for (let at = covered; at < from; at++) used += past[at]?.stubTokens ?? 0
	return used <= available * BEHIND_SUMMARY ? [covered, whole] : [from, whole]
}

export interface Leaving {
	/** The newest turn that a summary should cover now. */
	through: string
	/** The first turn after it; null: the next new one. */
	next: string | null
	/** The most tokens that the summary may have, by the estimate. */
	most: number
}

/**
 * The turns that a summary should cover now: those that the next cut will leave out, if it is near, or those that were omitted
 * without a summary. Null if there are none.
 */
export function leavingNext(input: FitInput): Leaving | null {
	const { marks, summary, budget } = input
	const { past, from, whole, shown, earlier, cost, current, instructions, tools, available, most } = measure(input)
	const first = past[from]?.run_id
	const room = budget - instructions - tools
	const used = earlier(marks) + shown(from, whole) + cost(current)
	const isAhead = summary !== undefined && first !== undefined && summary.through >= first
	if (used > room * AHEAD && !isAhead) {
		const at = leftFrom(past, from, available * LEFT)
		const through = past[at - 1]?.run_id
		if (at > from && through !== undefined) return { through, next: past[at]?.run_id ?? null, most }
	}
	const through = notCovered(marks.omitted, summary).at(-1)?.run_id
	return through === undefined ? null : { through, next: first ?? null, most }
}

/** All turns but the newest `kept`, regardless of the room. Null if there are no others, or if the summary covers them. */
export function leavingNow(input: FitInput, kept: number): Leaving | null {
	const { past, most } = measure(input)
	const at = past.length - kept
	const through = past[at - 1]?.run_id
	if (through === undefined || (input.summary && input.summary.through >= through)) return null
	return { through, next: past[at]?.run_id ?? null, most }
}

function leftFrom(past: readonly PastTurn[], from: number, room: number): number {
	let used = 0
	let at = past.length
	while (at > from && used + (past[at - 1]?.tokens ?? 0) <= room) used += past[--at]?.tokens ?? 0
	return at
}
