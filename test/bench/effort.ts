/** How long the measurements take, and so how sure they are. */
export interface Effort {
	/** Pairs of rounds, without those that warm up. */
	rounds: number
	/** Runs of a round; a multiple of 32. */
	runs: number
	/**
	 * Runs before those that are measured, of each side; a multiple of `runs`. V8 compiles the gateway's code for the first 15,000,
	 * that of the bare loop for the first 8,000.
	 */
	runsWarmUp: number
	/** Turns of the longer conversations. */
	turns: readonly number[]
	/** Single runs, for latency, and those before them: V8 compiles for the first 4,000. */
	single: number
	singleWarmUp: number
	/** REST requests of a round. V8 compiles for the first 60,000, as many as the rounds that warm up have. */
	requests: number
	/** Webhook deliveries of a round; V8 compiles for the first 12,000. */
	deliveries: number
	/** Events of a round of the fan-out. */
	events: number
	starts: number
	/** Runs and other events behind the console. */
	consoleRuns: number
	consoleEvents: number
	/** Clients at the same time, one number after another. */
	clients: readonly number[]
	/** Memories of the one agent whose memory is searched, one number after another. */
	memories: readonly number[]
	/**
	 * Runs until the heaps stop growing, and the runs after these during which memory is measured. The gateway's heaps stop
	 * growing after about 8,000 runs, those of the bare loop after 14,000.
	 */
	memoryWarmUp: number
	memoryRuns: number
}

export type Level = 'quick' | 'standard' | 'long'

export const efforts: Record<Level, Effort> = {
	quick: {
		rounds: 1,
		runs: 320,
		runsWarmUp: 960,
		turns: [5],
		single: 100,
		singleWarmUp: 100,
		requests: 5_000,
		deliveries: 640,
		events: 200,
		starts: 1,
		consoleRuns: 500,
		consoleEvents: 20_000,
		clients: [1, 4, 16, 64, 256],
		memories: [5_000],
		memoryWarmUp: 10_000,
		memoryRuns: 2_000,
	},
	standard: {
		rounds: 3,
		runs: 1_920,
		runsWarmUp: 15_360,
		turns: [5, 50],
		single: 300,
		singleWarmUp: 4_000,
		requests: 20_000,
		deliveries: 4_000,
		events: 500,
		starts: 3,
		consoleRuns: 10_000,
		consoleEvents: 1_000_000,
		clients: [1, 4, 16, 64, 256],
		memories: [20_000],
		memoryWarmUp: 16_000,
		memoryRuns: 4_000,
	},
	long: {
		rounds: 9,
		runs: 3_840,
		runsWarmUp: 15_360,
		turns: [5, 50],
		single: 3_000,
		singleWarmUp: 4_000,
		requests: 20_000,
		deliveries: 4_000,
		events: 2_000,
		starts: 9,
		consoleRuns: 10_000,
		consoleEvents: 1_000_000,
		clients: [1, 4, 16, 64, 256],
		memories: [20_000, 100_000],
		memoryWarmUp: 16_000,
		memoryRuns: 10_000,
	},
}
