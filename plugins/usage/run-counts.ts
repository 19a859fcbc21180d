/** Counts of ended runs, with a histogram of the time that they were active. Counts of several records can be added. */
import type { RunEnd, RunFigures } from './contract.ts'

export interface RunCounts {
	completed: number
	failed: number
	/** Runs in each bucket of the histogram. */
	active: number[]
}

/** Upper bounds of the buckets, in seconds; the last bucket has none. */
const limits = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000] as const

const empty: readonly number[] = Array.from({ length: limits.length + 1 }, () => 0)

export function noRuns(): RunCounts {
	return { completed: 0, failed: 0, active: [...empty] }
}

/** Adds to `sum`. */
export function addRuns(sum: RunCounts, more: RunCounts): void {
	sum.completed += more.completed
	sum.failed += more.failed
	more.active.forEach((count, at) => (sum.active[at] = (sum.active[at] ?? 0) + count))
}

/** The same counts with this run. */
export function withRun(counts: RunCounts | undefined, { status, active_ms }: RunEnd): RunCounts {
	const sum = noRuns()
	if (counts) addRuns(sum, counts)
	sum[status]++
	const found = limits.findIndex((limit) => active_ms / 1000 <= limit)
	const bucket = found === -1 ? limits.length : found
	sum.active[bucket] = (sum.active[bucket] ?? 0) + 1
	return sum
}

export function figuresOf({ completed, failed, active }: RunCounts): RunFigures {
	return { completed, failed, p50_s: quantile(active, 0.5), p95_s: quantile(active, 0.95) }
}

/**
 * The `q`-quantile of the active time in seconds; null without runs. Interpolated linearly within a bucket, like Prometheus's
 * `histogram_quantile`; the last bucket counts as its lower bound.
 */
function quantile(active: readonly number[], q: number): number | null {
	const rank = q * active.reduce((sum, count) => sum + count, 0)
	let before = 0
	for (const [at, count] of active.entries()) {
		if (count > 0 && before + count >= rank) {
			const lower = limits[at - 1] ?? 0
			const upper = limits[at] ?? lower
			return Number((lower + ((upper - lower) * (rank - before)) / count).toPrecision(3))
		}
		before += count
	}
	return null
}
