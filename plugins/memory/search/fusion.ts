import { TopScores } from './top-scores.ts'
import type { Scored } from './top-scores.ts'
import type { Matches } from './keywords.ts'

/** The vector leg of one search. */
export interface Similar {
	/** In no order; the scores are cosines. */
	found: readonly Scored[]
	/** Relative to the keywords. */
	weight: number
	/** For a memory without a vector, the mean cosine of the memories. */
	cosine(ordinal: number): number
	/** 0 for the mean cosine of the memories, 1 for that of the most similar one. */
	relative(cosine: number): number
	/** 0 for the mean cosine of the memories, 1 for that of the same text. */
	closeness(cosine: number): number
}

/**
 * Ordinals of both legs, best first: the keyword score relative to the best one, plus the weighted similarity. The scores
 * are added rather than the ranks, since ranks do not tell a clear match from one that is barely better than the next.
 */
export function fuse({ found: byWord, best, needed }: Matches, similar: Similar | undefined, limit: number): number[] {
	const fused = new TopScores(limit)
	if (similar) {
		const { found, weight, cosine, relative } = similar
		// Skips the similarity of candidates that it could not lift into the results: most of them.
		const minimum = needed / best - weight
		for (const { ordinal, score } of byWord) {
			if (score / best >= minimum) fused.offer(ordinal, score / best + weight * relative(cosine(ordinal)))
		}
		if (minimum <= 0) {
			const worded = new Set(byWord.map(({ ordinal }) => ordinal))
			for (const { ordinal, score } of found) {
				if (!worded.has(ordinal)) fused.offer(ordinal, weight * relative(score))
			}
		}
	} else for (const { ordinal, score } of byWord) fused.offer(ordinal, score)
	return fused.sorted().map(({ ordinal }) => ordinal)
}
