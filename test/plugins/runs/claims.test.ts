/** Runs that are executed without a job. */
import { mock } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import t from 'tap'
import type { Context } from '../../../core/plugin.ts'
import { executeNow } from '../../../plugins/runs/claims.ts'
import type { RunRecord, RunSettings } from '../../../plugins/runs/contract.ts'
import { withRun } from '../../../plugins/runs/run-lock.ts'

const run = { run_id: 'r1', agent: 'ada', agent_uid: 'u1' } as RunRecord

/** The context of a gateway whose store fails `failures` times. */
function context(
	failures: number,
	acquire: () => Promise<() => void> = async () => () => {},
	{ signal } = new AbortController(),
) {
	const calls = { reads: 0, jobs: [] as unknown[], errors: 0 }
	const ctx = {
		pool: { places: { acquire } },
		config: { max_waiting_total: 1_000 },
		signal,
		gateway: { state: () => 'ready' },
		log: { error: () => void calls.errors++ },
		queue: { enqueue: async (job: unknown) => void calls.jobs.push(job) },
		store: {
			async get() {
				if (++calls.reads <= failures) throw new Error('the disk has failed')
			},
		},
	} as unknown as Context<RunSettings>
	return { ctx, calls }
}

void t.test('a run whose store failed is retried after 5 s, without a job', async (t) => {
	mock.timers.enable({ apis: ['setTimeout'] })
	t.teardown(() => mock.timers.reset())
	const { ctx, calls } = context(1)
	executeNow(ctx, run)
	await turn()
	t.same(calls, { reads: 1, jobs: [], errors: 1 })
	mock.timers.tick(5_000)
	await turn()
	t.same(calls, { reads: 2, jobs: [], errors: 1 }, 'no job is written, because the disk may be full')
})

void t.test('a run without a place gets a job when its instance is released', async (t) => {
	const { ctx, calls } = context(0, () => Promise.reject(new Error('released')))
	executeNow(ctx, run)
	await turn()
	t.equal(calls.reads, 0)
	t.match(calls.jobs, [{ id: /^r1:/, body: { run_id: 'r1', agent: 'ada', uid: 'u1' } }])
})

void t.test('a locked run takes a place and is read once all holders have released the lock', async (t) => {
	let taken = 0
	const { ctx, calls } = context(0, async () => (taken++, () => void taken--))
	const first = Promise.withResolvers<void>()
	const second = Promise.withResolvers<void>()
	const holders = [withRun('r1', () => first.promise), withRun('r1', () => second.promise)]
	executeNow(ctx, run)
	await turn()
	t.equal(taken, 0)
	first.resolve()
	await turn()
	t.equal(taken, 0, 'the next holder has the lock')
	second.resolve()
	await Promise.all(holders)
	await turn()
	t.same({ taken, reads: calls.reads }, { taken: 0, reads: 1 }, 'the run is read, because its holder may have failed')
})

void t.test('a run that is locked while it waits for a place releases the place', async (t) => {
	const place = Promise.withResolvers<() => void>()
	let released = 0
	const { ctx, calls } = context(0, () => place.promise)
	executeNow(ctx, run)
	await turn()
	const { promise, resolve } = Promise.withResolvers<void>()
	const holder = withRun('r1', () => promise)
	place.resolve(() => void released++)
	await turn()
	t.same({ released, reads: calls.reads }, { released: 1, reads: 0 })
	resolve()
	await holder
	await turn()
	t.same({ released, reads: calls.reads }, { released: 2, reads: 1 })
})

void t.test('a run that waits for its lock gets a job when its instance is released', async (t) => {
	const instance = new AbortController()
	const { ctx, calls } = context(0, undefined, instance)
	const { promise, resolve } = Promise.withResolvers<void>()
	const holder = withRun('r1', () => promise)
	executeNow(ctx, run)
	await turn()
	instance.abort(new Error('released'))
	await turn()
	resolve()
	await holder
	t.equal(calls.reads, 0)
	t.match(calls.jobs, [{ id: /^r1:/ }])
})
