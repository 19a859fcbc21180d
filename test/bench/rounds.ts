import { median } from './statistics.ts'

/** Rounds after which both sides run optimized code, as a process does that has worked for a while; unless `warmUp` says otherwise. */
const WARM_UP = 3

export interface Pair<T> {
	ours: T
	bare: T
}

/**
 * Measures both sides in turns, so that whatever else the machine does meets both: a slow minute makes both slow, and
 * the ratio of neighbours stays. The first rounds of each only warm up. Every second round begins with the other side.
 */
export async function inTurns<T>(
	rounds: number,
	ours: () => Promise<T>,
	bare: () => Promise<T>,
	warmUp = WARM_UP,
): Promise<Pair<T>[]> {
	const pairs: Pair<T>[] = []
	for (let round = 0; round < warmUp + rounds; round++) {
		const oursFirst = round % 2 === 0
		const first = await (oursFirst ? ours() : bare())
		const second = await (oursFirst ? bare() : ours())
		if (round >= warmUp) pairs.push(oursFirst ? { ours: first, bare: second } : { ours: second, bare: first })
	}
	return pairs
}

/** Medians of one figure on both sides, and the median of the ratios within each pair. */
export function compare<T>(pairs: readonly Pair<T>[], figure: (one: T) => number): Pair<number> & { ratio: number } {
	return {
		ours: median(pairs.map(({ ours }) => figure(ours))),
		bare: median(pairs.map(({ bare }) => figure(bare))),
		ratio: median(pairs.map(({ ours, bare }) => figure(ours) / figure(bare))),
	}
}
