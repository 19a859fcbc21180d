/** Where a conversation is cut that has become too long, and which turns leave its window next. */
import type { ContextSummary as Summary } from '../order.ts'
import { notCovered } from './earlier.ts'
import { measure } from './measure.ts'
import type { FitInput } from './measure.ts'
import type { PastTurn } from './past.ts'

/** After a cut: the part of the room for earlier turns that they fill, and the part of that for whole ones. */
const AFTER_CUT = 0.35
const WHOLE = 0.7
/** As much may be left where a summary was made ahead, so that the cut is directly after it. */
const BEHIND_SUMMARY = 0.65
/** The part of the room beside instructions and tools above which a summary is made ahead, and the part that it leaves to turns. */
const AHEAD = 0.6
const LEFT = 0.3

/** So much is cut that many turns fit before the next cut; directly after the summary, if that leaves room enough. */
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
	/** The first turn after it; null: the next one to come. */
	next: string | null
	/** Tokens that the summary may take, by the estimate. */
	most: number
}

/**
 * Which turns a summary should cover now: those that the next cut will leave out, once that is near; or those that were left
 * out without one. Null where neither is so.
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

/** All turns but the newest `kept`, whatever room there is. Null where there are no more, or where the summary covers them. */
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
