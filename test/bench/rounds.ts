import { median } from './statistics.ts'

/** Default number of warm-up rounds, after which both sides run optimized code, as long-running processes do. */
const WARM_UP = 3

export interface Pair<T> {
	ours: T
	bare: T
}

/**
 * Measures both sides alternately, so that other load on the machine affects both and hardly changes the ratio of neighbouring
 * rounds. The first `warmUp` rounds are discarded. Every second round begins with the other side.
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

/**
 * Calls `measure`, which starts both sides, `processes` times. V8 compiles the same program differently in each process, and the
 * memory lies differently, so that one process says little about the next one.
 */
export async function inFreshProcesses<T>(processes: number, measure: () => Promise<Pair<T>[]>): Promise<Pair<T>[]> {
	const pairs: Pair<T>[] = []
	for (let n = 0; n < processes; n++) pairs.push(...(await measure()))
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
