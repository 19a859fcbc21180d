/** How long the measurements take, and so how sure they are. */
export interface Effort {
	/** Pairs of rounds, after one that warms up. */
	rounds: number
	/** Runs of a round; a multiple of 32. */
	runs: number
	/** Single runs of a round, for latency. */
	single: number
	/** REST requests of a round. */
	requests: number
	/** Events of a round of the fan-out. */
	events: number
	starts: number
	/** Runs over which memory is watched. */
	memoryRuns: number
}

export type Level = 'quick' | 'standard' | 'long'

export const efforts: Record<Level, Effort> = {
	quick: { rounds: 1, runs: 320, single: 50, requests: 2_000, events: 200, starts: 2, memoryRuns: 1_000 },
	standard: { rounds: 3, runs: 960, single: 100, requests: 5_000, events: 500, starts: 5, memoryRuns: 1_000 },
	long: { rounds: 9, runs: 1_920, single: 300, requests: 20_000, events: 2_000, starts: 9, memoryRuns: 10_000 },
}
