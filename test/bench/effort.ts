/** How many repetitions the measurements have, which determines their duration and precision. */
export interface Effort {
	/** Pairs of measured rounds in each pair of processes. */
	rounds: number
	/**
	 * Fresh pairs of processes for figures with a goal that depend on compiled code: from one process to the next, such a ratio
	 * differs by up to a tenth.
	 */
	processes: number
	/** Runs per round; a multiple of 32. */
	runs: number
	/**
	 * Warm-up runs of each side; a multiple of `runs`. V8 still compiles the gateway's code during the first 15,000, that of the bare
	 * loop during the first 8,000.
	 */
	runsWarmUp: number
	/** Lengths of the longer conversations, in turns. */
	turns: readonly number[]
	/** Sequential runs for latency, and their warm-up: V8 compiles during the first 4,000. */
	single: number
	singleWarmUp: number
	/** REST requests per round. V8 compiles during the first 60,000, which are the warm-up rounds. */
	requests: number
	/**
	 * Webhook deliveries per round, and their warm-up: V8 compiles during the first 12,000. All of them wait in memory, so many more
	 * would measure the garbage collector.
	 */
	deliveries: number
	deliveriesWarmUp: number
	/** Events per round of the fan-out. */
	events: number
	starts: number
	/** Runs, and other events, in the store behind the console. */
	consoleRuns: number
	consoleEvents: number
	/** Numbers of concurrent clients to measure. */
	clients: readonly number[]
	/** Numbers of memories of one agent to measure. */
	memories: readonly number[]
	/**
	 * Warm-up runs until the heaps stop growing, and the runs during which memory is then measured. The gateway's heaps stop growing
	 * after 16,000 runs, those of the bare loop after 14,000.
	 */
	memoryWarmUp: number
	memoryRuns: number
}

export type Level = 'quick' | 'standard' | 'long'

export const efforts: Record<Level, Effort> = {
	quick: {
		rounds: 1,
		processes: 1,
		runs: 320,
		runsWarmUp: 960,
		turns: [5],
		single: 100,
		singleWarmUp: 100,
		requests: 5_000,
		deliveries: 640,
		deliveriesWarmUp: 1_920,
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
		rounds: 5,
		processes: 3,
		runs: 1_920,
		runsWarmUp: 15_360,
		turns: [5, 50],
		single: 2_000,
		singleWarmUp: 4_000,
		requests: 20_000,
		deliveries: 2_400,
		deliveriesWarmUp: 12_000,
		events: 500,
		starts: 5,
		consoleRuns: 10_000,
		consoleEvents: 1_000_000,
		clients: [1, 4, 16, 64, 256],
		memories: [20_000, 100_000],
		memoryWarmUp: 20_000,
		memoryRuns: 4_000,
	},
	long: {
		rounds: 9,
		processes: 5,
		runs: 3_840,
		runsWarmUp: 15_360,
		turns: [5, 50],
		single: 3_000,
		singleWarmUp: 4_000,
		requests: 20_000,
		deliveries: 4_000,
		deliveriesWarmUp: 12_000,
		events: 2_000,
		starts: 9,
		consoleRuns: 10_000,
		consoleEvents: 1_000_000,
		clients: [1, 4, 16, 64, 256],
		memories: [20_000, 100_000],
		memoryWarmUp: 20_000,
		memoryRuns: 10_000,
	},
}
