import t from 'tap'
import { addRuns, figuresOf, noRuns, withRun } from '../../../plugins/usage/run-counts.ts'
import type { RunCounts } from '../../../plugins/usage/run-counts.ts'

const counted = (status: 'completed' | 'failed', ...seconds: number[]): RunCounts =>
	seconds.reduce((sum, s) => withRun(sum, { status, active_ms: s * 1000 }), noRuns())

void t.test('without runs there are no durations', (t) => {
	t.strictSame(figuresOf(noRuns()), { completed: 0, failed: 0, p50_s: null, p95_s: null })
	t.end()
})

void t.test('quantiles lie in the bucket of the run', (t) => {
	const { p50_s, p95_s } = figuresOf(counted('completed', ...Array<number>(90).fill(2), ...Array<number>(10).fill(40)))
	t.ok(p50_s !== null && p50_s > 1 && p50_s <= 2.5)
	t.ok(p95_s !== null && p95_s > 25 && p95_s <= 50)
	t.end()
})

void t.test('a limit belongs to the bucket below it, and longer runs count as the last limit', (t) => {
	t.equal(figuresOf(counted('completed', 0.1)).p95_s, 0.095)
	t.equal(figuresOf(counted('completed', 1)).p95_s, 0.975)
	t.equal(figuresOf(counted('failed', 90_000)).p50_s, 10_000)
	t.equal(figuresOf(counted('completed', 0)).p50_s, 0.05)
	t.end()
})

void t.test('the sum of two counts is the count of all their runs', (t) => {
	const sum = counted('completed', 1, 2, 3)
	addRuns(sum, counted('failed', 40, 70_000))
	const all = [40, 70_000].reduce(
		(counts, s) => withRun(counts, { status: 'failed', active_ms: s * 1000 }),
		counted('completed', 1, 2, 3),
	)
	t.strictSame(sum, all)
	t.match(figuresOf(sum), { completed: 3, failed: 2 })
	t.end()
})

void t.test('adding a run does not change the previous counts', (t) => {
	const before = counted('completed', 1)
	const copy = structuredClone(before)
	withRun(before, { status: 'failed', active_ms: 5 })
	t.strictSame(before, copy)
	t.end()
})
