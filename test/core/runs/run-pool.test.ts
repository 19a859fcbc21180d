import { writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import t from 'tap'
import { Fault } from '../../../core/errors.ts'
import type { ToolReply } from '../../../core/protocol.ts'
import { RunPool } from '../../../core/runs/run-pool.ts'
import type { RunHost, RunPoolOptions } from '../../../core/runs/run-pool.ts'
import { offlineOrder } from '../../support/offline-order.ts'

const puppet = new URL('../../fixtures/workers/puppet.ts', import.meta.url)
const sandbox = new URL('../../../sandbox/worker.ts', import.meta.url)

/** Records the messages of a run, and lets a test wait for them. */
class Host implements RunHost {
	readonly seen: string[] = []
	readonly #waiting = new Map<string, () => void>()
	onEvent: () => void = () => {}
	onModel: () => Promise<null> = () => Promise.resolve(null)
	onTool: () => Promise<ToolReply> = () => Promise.resolve({ status: 'done', ok: true, content: 'done' })

	event({ event_type }: { event_type: string }): void {
		this.#see(`event ${event_type}`)
		this.onEvent()
	}

	stream(): void {
		if (this.seen.at(-1) !== 'stream') this.#see('stream')
	}

	sent(): void {}

	reserve(): Promise<null> {
		return Promise.resolve(null)
	}

	slot(): Promise<null> {
		return Promise.resolve(null)
	}

	leave_slot(): Promise<null> {
		return Promise.resolve(null)
	}

	model(): Promise<null> {
		this.#see('model')
		return this.onModel()
	}

	remark(): Promise<null> {
		this.#see('remark')
		return Promise.resolve(null)
	}

	blob(): Promise<null> {
		return Promise.resolve(null)
	}

	tool({ call }: Parameters<RunHost['tool']>[0]): Promise<ToolReply> {
		this.#see(`tool ${call.name} ${call.arguments}`)
		return this.onTool()
	}

	waitFor(message: string): Promise<void> {
		if (this.seen.includes(message)) return Promise.resolve()
		return new Promise((resolve) => this.#waiting.set(message, resolve))
	}

	#see(message: string): void {
		this.seen.push(message)
		this.#waiting.get(message)?.()
	}
}

void t.test('200 runs share two threads, and each has its own events, calls and outcome', async (t) => {
	const pool = open(t, { worker: sandbox, threads: 2, runs_per_thread: 32 })
	const runs = Array.from({ length: 200 }, (_, n) => {
		const host = new Host()
		return { n, host, handle: pool.execute(offlineOrder(`r${n}`, `/tool count {"n":${n}}`), host) }
	})
	await turn()
	t.match(pool.stats(), { capacity: 64, active: 64, waiting: 136 })
	for (const { n, host, handle } of runs) {
		t.match(await handle.outcome, { status: 'completed', answer: { content: 'count answered: done' } })
		t.strictSame(host.seen, ['event model.request', 'model', `tool count {"n":${n}}`, 'event model.request', 'stream'])
	}
	t.match(pool.stats(), { threads: 2, active: 0, waiting: 0, lost_threads: 0 })
})

void t.test('no thread starts before the first run', async (t) => {
	const pool = open(t, {})
	t.equal(pool.stats().threads, 0)
	t.match(await pool.execute(offlineOrder('r1', 'say'), new Host()).outcome, { status: 'completed' })
	t.equal(pool.stats().threads, 1)
})

void t.test('a run that handles the abort stops, and its thread stays', async (t) => {
	const pool = open(t, { grace_ms: 60_000 })
	const host = new Host()
	const handle = pool.execute(offlineOrder('r1', 'wait'), host)
	await host.waitFor('event model.request')
	t.equal(pool.running('r1'), handle)
	await handle.abort('enough')
	t.equal(pool.running('r1'), undefined)
	t.strictSame(await handle.outcome, { status: 'stopped' })
	t.match(pool.stats(), { threads: 1, active: 0, lost_threads: 0 })
})

void t.test('an endless run is ended with its thread, and the other runs of that thread can resume', async (t) => {
	const pool = open(t, { runs_per_thread: 3, grace_ms: 50 })
	const [a, b, looping] = [new Host(), new Host(), new Host()]
	const others = [pool.execute(offlineOrder('a', 'wait'), a), pool.execute(offlineOrder('b', 'deaf'), b)]
	await Promise.all([a.waitFor('event model.request'), b.waitFor('event model.request')])
	const handle = pool.execute(offlineOrder('looping', 'loop'), looping)
	await looping.waitFor('event model.request')
	await handle.abort('enough')
	t.strictSame(await handle.outcome, { status: 'stopped' })
	for (const other of others) await t.rejects(other.outcome, { code: 'thread_lost' })
	t.equal(pool.stats().lost_threads, 1)
	t.match(
		await pool.execute(offlineOrder('a', 'say'), new Host()).outcome,
		{ status: 'completed' },
		'another thread serves it',
	)
})

for (const end of ['throw', 'exit', 'memory']) {
	void t.test(`a thread that ends by ${end} loses only its runs, and is replaced`, async (t) => {
		const pool = open(t, { runs_per_thread: 2, heap_mib: 48 })
		const host = new Host()
		const other = pool.execute(offlineOrder('other', 'wait'), host)
		await host.waitFor('event model.request')
		const lost = pool.execute(offlineOrder('lost', end), new Host())
		await t.rejects(lost.outcome, { code: 'thread_lost' })
		await t.rejects(other.outcome, { code: 'thread_lost' })
		t.match(await pool.execute(offlineOrder('lost', 'say'), new Host()).outcome, { status: 'completed' })
		t.equal(pool.stats().lost_threads, 1)
	})
}

void t.test('runs that waited for a lost thread execute on the next one', async (t) => {
	const pool = open(t, { runs_per_thread: 1 })
	const lost = pool.execute(offlineOrder('lost', 'exit'), new Host())
	const waiting = [1, 2, 3].map((n) => pool.execute(offlineOrder(`w${n}`, 'say'), new Host()))
	await t.rejects(lost.outcome, { code: 'thread_lost' })
	for (const one of waiting) t.match(await one.outcome, { status: 'completed' })
})

void t.test('a run that begins while a thread is being terminated waits for the next thread', async (t) => {
	// Without a grace time, the aborted run is over before its thread has ended.
	const pool = open(t, { grace_ms: 0 })
	for (let n = 0; n < 3; n++) {
		const host = new Host()
		const deaf = pool.execute(offlineOrder('deaf', 'deaf'), host)
		await host.waitFor('event model.request')
		await deaf.abort('enough')
		t.match(await pool.execute(offlineOrder('next', 'say'), new Host()).outcome, { status: 'completed' })
	}
	t.equal(pool.stats().lost_threads, 3)
})

void t.test('after an abort, no message of the thread reaches the host', async (t) => {
	const pool = open(t, { grace_ms: 60_000 })
	const host = new Host()
	const handle = pool.execute(offlineOrder('r1', 'rude'), host)
	await host.waitFor('event model.request')
	await handle.abort('enough')
	t.strictSame(await handle.outcome, { status: 'stopped' })
	await pool.execute(offlineOrder('r2', 'say'), new Host()).outcome // the thread has sent all its messages
	t.strictSame(host.seen, ['event model.request'])
})

void t.test('an abort does not wait for a pending call of the host, and drops its reply', async (t) => {
	const pool = open(t, { grace_ms: 60_000 })
	const host = new Host()
	const reply = Promise.withResolvers<ToolReply>()
	host.onTool = () => reply.promise
	const handle = pool.execute(offlineOrder('r1', 'call'), host)
	await host.waitFor('tool tool {}')
	await handle.abort('enough')
	reply.resolve({ status: 'done', ok: true, content: 'too late' })
	t.strictSame(await handle.outcome, { status: 'stopped' })
})

void t.test('a run that waits for a thread is stopped at once', async (t) => {
	const pool = open(t, { runs_per_thread: 1, grace_ms: 60_000 })
	const host = new Host()
	const first = pool.execute(offlineOrder('r1', 'wait'), host)
	const second = pool.execute(offlineOrder('r2', 'wait'), host)
	await second.abort('enough')
	t.strictSame(await second.outcome, { status: 'stopped' })
	await turn()
	t.match(pool.stats(), { active: 1, waiting: 0 })
	await first.abort('enough')
})

void t.test('an abort before the thread has started prevents the run', async (t) => {
	const pool = open(t, { worker: sandbox, grace_ms: 60_000 })
	const host = new Host()
	const handle = pool.execute(offlineOrder('r1', 'Hello'), host)
	await handle.abort('enough')
	t.strictSame(await handle.outcome, { status: 'stopped' })
	t.strictSame(host.seen, [])
})

void t.test('a run that exceeds its wall time is ended by the pool', async (t) => {
	const pool = open(t, { grace_ms: 50 })
	for (const prompt of ['deaf', 'loop']) {
		const outcome = await pool.execute({ ...offlineOrder('r1', prompt), remaining_ms: 20 }, new Host()).outcome
		t.match(outcome, {
			status: 'failed',
			error: { code: 'limit_wall_time', message: /60 s of active time; raise config/ },
		})
	}
})

void t.test('an error of the host ends the run and rejects its outcome', async (t) => {
	const pool = open(t, { runs_per_thread: 4 })
	const full = new Fault('storage_full', 'no room')
	const fail = (): never => {
		throw full
	}
	for (const broken of [
		{ onEvent: fail },
		{ onModel: fail },
		{ onTool: fail },
		{ onTool: () => Promise.reject(full) },
	]) {
		const handle = pool.execute(offlineOrder('r1', 'call'), Object.assign(new Host(), broken))
		t.equal(await handle.outcome.catch((error: unknown) => error), full)
	}
	t.match(pool.stats(), { active: 0, lost_threads: 0 })
})

void t.test('a reply that cannot be cloned ends the run', async (t) => {
	const pool = open(t, {})
	const host = new Host()
	host.onTool = () => Promise.resolve({ status: 'done', ok: true, content: (() => {}) as unknown as string })
	await t.rejects(pool.execute(offlineOrder('r1', 'call'), host).outcome, /could not be cloned/)
})

void t.test('an order that cannot be cloned fails the run', async (t) => {
	const pool = open(t, {})
	const odd = {
		...offlineOrder('r1', 'say'),
		tools: [{ name: 'a', description: '', parameters: { default: () => 1 } }],
	}
	t.match(await pool.execute(odd, new Host()).outcome, {
		status: 'failed',
		error: { code: 'internal', message: /order/ },
	})
	t.match(await pool.execute(offlineOrder('r1', 'say'), new Host()).outcome, { status: 'completed' })
})

void t.test('a worker that ends a run without an outcome causes an error', async (t) => {
	const pool = open(t, {})
	await t.rejects(pool.execute(offlineOrder('r1', 'silent'), new Host()).outcome, /without an outcome/)
})

void t.test('a worker that does not load is reported with the cause, and retried for the next run', async (t) => {
	const folder = t.testdir({ 'worker.mjs': 'throw new Error("half written")' })
	const pool = open(t, { worker: pathToFileURL(join(folder, 'worker.mjs')), threads: 2 })
	for (const id of ['r1', 'r2']) {
		const fault = { code: 'unavailable', message: 'no worker thread can be started: half written' }
		await t.rejects(pool.execute(offlineOrder(id, 'say'), new Host()).outcome, fault)
	}
	writeFileSync(join(folder, 'worker.mjs'), `export { default } from ${JSON.stringify(puppet.href)}`)
	t.match(await pool.execute(offlineOrder('r3', 'say'), new Host()).outcome, { status: 'completed' })
})

void t.test(
	'if the system cannot start threads, the runs fail with the reason, and the next run retries',
	async (t) => {
		const threads = createRequire(import.meta.url)('node:worker_threads') as { Worker: unknown }
		const { Worker } = threads
		t.teardown(() => (threads.Worker = Worker))
		threads.Worker = class {
			constructor() {
				throw new Error('EAGAIN')
			}
		}
		const pool = open(t, {})
		const runs = ['r1', 'r2'].map((id) => pool.execute(offlineOrder(id, 'say'), new Host()))
		const fault = { code: 'unavailable', message: 'no worker thread can be started: EAGAIN' }
		for (const { outcome } of runs) await t.rejects(outcome, fault)
		threads.Worker = Worker
		t.match(await pool.execute(offlineOrder('r1', 'say'), new Host()).outcome, { status: 'completed' })
	},
)

void t.test('a new size serves new runs, while old runs end on their old threads', async (t) => {
	const pool = open(t, { threads: 1, runs_per_thread: 1, grace_ms: 60_000 })
	const host = new Host()
	const old = pool.execute(offlineOrder('old', 'wait'), host)
	await host.waitFor('event model.request')
	const waiting = pool.execute(offlineOrder('waiting', 'say'), new Host())
	pool.resize({ threads: 2, runs_per_thread: 5 })
	t.equal(pool.capacity, 10)
	t.match(await waiting.outcome, { status: 'completed' }, 'waiting runs use the new threads')
	t.equal(pool.stats().threads, 3)
	t.equal(pool.active, 1)
	await old.abort('enough')
	t.strictSame(await old.outcome, { status: 'stopped' })
	t.match(pool.stats(), { threads: 2, lost_threads: 0 })
})

void t.test('threads do not get the environment or the flags of the process', async (t) => {
	process.env.OPENAI_BASE_URL = 'http://127.0.0.1:1/'
	t.teardown(() => delete process.env.OPENAI_BASE_URL)
	const pool = open(t, {})
	const outcome = await pool.execute(offlineOrder('r1', 'environment'), new Host()).outcome
	if (outcome.status !== 'completed') throw new Error(outcome.status)
	const seen = JSON.parse(outcome.answer.content) as { variables: string[]; flags: string[] }
	t.notOk(seen.variables.includes('OPENAI_BASE_URL'))
	t.notOk(seen.variables.includes('HOME'))
	t.strictSame(seen.flags, ['--no-experimental-require-module'], 'see THREAD_FLAGS')
})

void t.test('idle settles with the last run, or after its timeout', async (t) => {
	const pool = open(t, { grace_ms: 60_000 })
	await pool.idle(60_000)
	const handle = pool.execute(offlineOrder('r1', 'wait'), new Host())
	await pool.idle(5)
	t.equal(pool.active, 1)
	const idle = pool.idle(60_000)
	await Promise.all([handle.abort('enough'), idle])
	t.equal(pool.active, 0)
})

void t.test('a run cannot execute twice at the same time', async (t) => {
	const pool = open(t, {})
	const handle = pool.execute(offlineOrder('r1', 'wait'), new Host())
	t.throws(() => pool.execute(offlineOrder('r1', 'say'), new Host()), { code: 'conflict' })
	await handle.abort('enough')
	t.match(await pool.execute(offlineOrder('r1', 'say'), new Host()).outcome, { status: 'completed' })
})

void t.test('the number of runs that wait for a thread is limited', async (t) => {
	const pool = open(t, { runs_per_thread: 1 })
	const accepted = Array.from({ length: 1 + 1024 }, (_, n) => pool.execute(offlineOrder(`r${n}`, 'wait'), new Host()))
	await t.rejects(pool.execute(offlineOrder('one more', 'say'), new Host()).outcome, { code: 'queue_full' })
	t.equal(pool.active, accepted.length)
})

void t.test('closing the pool ends its runs so that they can resume elsewhere, and refuses new ones', async (t) => {
	const pool = open(t, { runs_per_thread: 2, grace_ms: 60_000 })
	const host = new Host()
	const runs = ['loop', 'wait', 'wait'].map((prompt, n) => pool.execute(offlineOrder(`r${n}`, prompt), host))
	await host.waitFor('event model.request')
	await pool[Symbol.asyncDispose]()
	for (const run of runs) await t.rejects(run.outcome, { code: 'thread_lost' })
	await t.rejects(pool.execute(offlineOrder('late', 'say'), host).outcome, { code: 'unavailable' })
	t.match(pool.stats(), { threads: 0, active: 0, lost_threads: 0 })
})

function open(test: Pick<typeof t, 'teardown'>, options: Partial<RunPoolOptions>): RunPool {
	const pool = new RunPool({ worker: puppet, threads: 1, runs_per_thread: 8, grace_ms: 60_000, ...options })
	test.teardown(() => pool[Symbol.asyncDispose]())
	return pool
}
