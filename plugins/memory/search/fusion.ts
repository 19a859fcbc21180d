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
	const best = byWord[0]?.score ?? 1
	const scores = new Map(byWord.map(({ ordinal, score }) => [ordinal, score / best]))
	if (similar) {
		for (const { ordinal } of similar.found) if (!scores.has(ordinal)) scores.set(ordinal, 0)
		// Most candidates cannot become one of the results by their similarity, which is then not computed.
		const minimum = (byWord[limit - 1]?.score ?? 0) / best - similar.weight
		for (const [ordinal, score] of scores)
			if (score < minimum) scores.delete(ordinal)
			else scores.set(ordinal, score + similar.weight * similar.relative(ordinal))
	}
	return [...scores]
		.toSorted((a, b) => b[1] - a[1] || a[0] - b[0])
		.slice(0, limit)
		.map(([ordinal]) => ordinal)
}
