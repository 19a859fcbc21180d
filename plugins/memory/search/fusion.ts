import { Best } from './best.ts'
import type { Scored } from './best.ts'

/** The vector leg of one search. */
export interface Similar {
	found: readonly Scored[]
	/** Beside the keywords. */
	weight: number
	/** 0 for what memories are on average, 1 for the most similar one. */
	relative(ordinal: number): number
	/** 0 for what memories are on average, 1 for the same text. */
	closeness(ordinal: number): number
}

/**
 * Ordinals of both legs, best first: the keyword score relative to the best one, plus the weighted similarity. The scores
 * are added rather than the ranks, since ranks do not tell a clear match from one that is barely better than the next.
 */
export function fuse(byWord: readonly Scored[], similar: Similar | undefined, limit: number): number[] {
	if (!similar) return byWord.slice(0, limit).map(({ ordinal }) => ordinal)
	const { found, weight, relative } = similar
	const best = byWord[0]?.score ?? 1
	// Most candidates cannot become one of the results by their similarity, which is then not computed.
	const minimum = (byWord[limit - 1]?.score ?? 0) / best - weight
	const fused = new Best(limit)
	const offer = (ordinal: number, score: number): void => {
		if (score >= minimum) fused.offer(ordinal, score + weight * relative(ordinal))
	}
	for (const { ordinal, score } of byWord) offer(ordinal, score / best)
	if (minimum <= 0) {
		const worded = new Set(byWord.map(({ ordinal }) => ordinal))
		for (const { ordinal } of found) if (!worded.has(ordinal)) offer(ordinal, 0)
	}
	return fused.take().map(({ ordinal }) => ordinal)
}
