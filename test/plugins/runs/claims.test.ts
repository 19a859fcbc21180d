/** Runs that are executed without a job. */
import { mock } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import t from 'tap'
import type { Context } from '../../../core/plugin.ts'
import { executeNow } from '../../../plugins/runs/claims.ts'
import type { RunRecord, RunSettings } from '../../../plugins/runs/contract.ts'

const run = { run_id: 'r1', agent: 'ada', agent_uid: 'u1' } as RunRecord

/** Of a gateway whose store fails `failures` times. */
function context(failures: number, take: () => Promise<() => void> = async () => () => {}) {
	const calls = { reads: 0, jobs: [] as unknown[], errors: 0 }
	const ctx = {
		pool: { places: { take } },
		signal: new AbortController().signal,
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

void t.test('a run whose store failed is executed again after a while, without a job', async (t) => {
	mock.timers.enable({ apis: ['setTimeout'] })
	t.teardown(() => mock.timers.reset())
	const { ctx, calls } = context(1)
	executeNow(ctx, run)
	await turn()
	t.same(calls, { reads: 1, jobs: [], errors: 1 })
	mock.timers.tick(5_000)
	await turn()
	t.same(calls, { reads: 2, jobs: [], errors: 1 }, 'on a full disk a job could not be written')
})

void t.test('a run that has no place yet when its instance is released gets a job, for the next one', async (t) => {
	const { ctx, calls } = context(0, () => Promise.reject(new Error('released')))
	executeNow(ctx, run)
	await turn()
	t.equal(calls.reads, 0)
	t.match(calls.jobs, [{ id: /^r1:/, body: { run_id: 'r1', agent: 'ada', uid: 'u1' } }])
})
