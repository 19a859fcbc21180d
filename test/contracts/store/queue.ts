import type { Test } from 'tap'
import type { Engine, Lease, RunQueue } from '../../../core/store/ports.ts'
import type { Open, StoreSuiteOptions } from '../store.ts'
import { rejects } from './records.ts'

export function queueSuite(t: Test, open: Open, { reopen }: StoreSuiteOptions): void {
	const test = (name: string, body: (t: Test, queue: RunQueue, engine: Engine) => Promise<void>): void => {
		void t.test(name, async (t) => {
			await using engine = await open()
			await body(t, engine.queue, engine)
		})
	}

	test('hands out jobs oldest first, each once', async (t, queue) => {
		for (let i = 0; i < 30; i++) await queue.enqueue({ id: `j${i}`, body: { i, text: 'ü' } })
		t.equal(queue.waiting(), 30)
		const leases = await claimed(queue, 30)
		t.strictSame(
			leases.map(({ job, attempt }) => [job, attempt]),
			Array.from({ length: 30 }, (_, i) => [{ id: `j${i}`, body: { i, text: 'ü' } }, 1]),
		)
		t.equal(queue.waiting(), 0)
		for (const lease of leases) await lease.ack()
	})

	test('wakes a waiting claimer', async (t, queue) => {
		using claimer = new Claimer(queue, () => 1)
		const first = claimer.next()
		await queue.enqueue({ id: 'a', body: {} })
		t.equal((await first).job.id, 'a')
	})

	test('accepts an id only once while its job waits or is leased', async (t, queue) => {
		await Promise.all([1, 2, 3].map((n) => queue.enqueue({ id: 'a', body: { n } })))
		await queue.enqueue({ id: 'a', body: { n: 4 } })
		t.equal(queue.waiting(), 1)
		const [lease] = await claimed(queue, 1)
		t.strictSame(lease?.job.body, { n: 1 })
		await queue.enqueue({ id: 'a', body: { n: 5 } })
		t.equal(queue.waiting(), 0)
		await lease?.ack()
		await queue.enqueue({ id: 'a', body: { n: 6 } })
		const [again] = await claimed(queue, 1)
		t.strictSame([again?.job.body, again?.attempt], [{ n: 6 }, 1])
	})

	test('accepts an id again while its acknowledgement is in progress', async (t, queue) => {
		await queue.enqueue({ id: 'a', body: { n: 1 } })
		const [lease] = await claimed(queue, 1)
		await Promise.all([lease?.ack(), queue.enqueue({ id: 'a', body: { n: 2 } })])
		const [again] = await claimed(queue, 1)
		t.strictSame(again?.job.body, { n: 2 })
	})

	test('gives a claimer no more jobs than it asked for', async (t, queue) => {
		let max = 2
		using claimer = new Claimer(queue, () => max)
		for (let i = 0; i < 6; i++) await queue.enqueue({ id: `j${i}`, body: {} })
		const [a, b] = [await claimer.next(), await claimer.next()]
		const third = claimer.next()
		t.equal(queue.waiting(), 4)
		await a.ack()
		t.equal((await third).job.id, 'j2')
		const fourth = claimer.next()
		await b.release()
		t.equal((await fourth).job.id, 'j1', 'a released job is the oldest')
		max = 3
		t.equal((await claimer.next()).job.id, 'j3', 'a raised limit is noticed')
		t.equal(queue.waiting(), 2)
	})

	test('shares the jobs among claimers', async (t, queue) => {
		using one = new Claimer(queue, () => 5)
		using two = new Claimer(queue, () => 5)
		const leases = [one.next(), two.next(), one.next(), two.next()]
		await Promise.all(['a', 'b', 'c', 'd'].map((id) => queue.enqueue({ id, body: {} })))
		const ids = (await Promise.all(leases)).map(({ job }) => job.id)
		t.strictSame(ids.toSorted(), ['a', 'b', 'c', 'd'])
	})

	test('counts an attempt only once it has begun, if requested', async (t, queue) => {
		const end = new AbortController()
		const leases = queue.claim(() => 1, end.signal, false)[Symbol.asyncIterator]()
		const next = async (): Promise<Lease> => ((await leases.next()) as IteratorYieldResult<Lease>).value
		await queue.enqueue({ id: 'a', body: { n: 1 } })
		const first = await next()
		await first.release()
		const second = await next()
		t.strictSame([first.attempt, second.attempt], [1, 1])
		second.begin()
		await second.release()
		const third = await next()
		t.strictSame([third.job, third.attempt], [{ id: 'a', body: { n: 1 } }, 2])
		await third.ack()
		end.abort()
	})

	test('hands a released job out again, with a higher attempt and after its delay', async (t, queue) => {
		await queue.enqueue({ id: 'later', body: {} })
		await queue.enqueue({ id: 'a', body: { n: 1 } })
		using claimer = new Claimer(queue, () => 10)
		await (await claimer.next()).release(60_000)
		const first = await claimer.next()
		t.equal(first.job.id, 'a', 'before the older job, whose delay has not passed')
		t.equal(queue.waiting(), 1)
		const start = performance.now()
		await first.release(50)
		await first.release()
		const second = await claimer.next()
		t.ok(performance.now() - start >= 49, 'the delay has passed')
		t.strictSame([second.job, second.attempt], [{ id: 'a', body: { n: 1 } }, 2])
		await second.release()
		const third = await claimer.next()
		t.equal(third.attempt, 3)
		await third.ack()
		await third.ack()
		await third.release()
		t.equal(queue.waiting(), 1)
	})

	test('ends a claim with its signal', async (t, queue) => {
		const end = new AbortController()
		const ended = (async () => {
			for await (const lease of queue.claim(() => 1, end.signal)) await lease.ack()
		})()
		end.abort()
		await ended
		for await (const _ of queue.claim(() => 1, end.signal)) t.fail('an aborted claim hands out nothing')
		await queue.enqueue({ id: 'a', body: {} })
		t.equal(queue.waiting(), 1)
	})

	test('refuses an invalid id or body', async (t, queue) => {
		for (const id of ['', 'a\0', 'x'.repeat(257), '\ud800'])
			await rejects(t, queue.enqueue({ id, body: {} }), 'invalid_request')
		await rejects(t, queue.enqueue({ id: 'a', body: { n: 1n } }), 'invalid_request')
		await queue.enqueue({ id: 'a', body: { n: 1 } })
		t.equal(queue.waiting(), 1)
	})

	if (reopen) {
		void t.test('hands out unacknowledged jobs again after a restart', async (t) => {
			let engine = await open()
			for (const id of ['acked', 'leased', 'released', 'waiting']) await engine.queue.enqueue({ id, body: { id } })
			const [acked, , released] = await claimed(engine.queue, 3)
			await acked?.ack()
			await released?.release(60_000)
			engine = await reopen(engine)
			t.equal(engine.queue.waiting(), 3)
			const leases = await claimed(engine.queue, 2)
			t.strictSame(
				leases.map(({ job, attempt }) => [job.id, attempt, job.body]),
				[
					['leased', 2, { id: 'leased' }],
					['waiting', 1, { id: 'waiting' }],
				],
			)
			await engine.queue.enqueue({ id: 'leased', body: {} })
			await engine.queue.enqueue({ id: 'released', body: {} })
			t.equal(engine.queue.waiting(), 1, 'the released job, whose delay has not passed')
			for (const lease of leases) await lease.ack()
			engine = await reopen(engine)
			t.equal(engine.queue.waiting(), 1)
			await engine[Symbol.asyncDispose]()
		})

		void t.test('keeps the order of the jobs across a restart', async (t) => {
			let engine = await open()
			await Promise.all(Array.from({ length: 20 }, (_, i) => engine.queue.enqueue({ id: `j${i}`, body: {} })))
			engine = await reopen(engine)
			await engine.queue.enqueue({ id: 'new', body: {} })
			const ids = (await claimed(engine.queue, 21)).map(({ job }) => job.id)
			t.strictSame(ids, [...Array.from({ length: 20 }, (_, i) => `j${i}`), 'new'])
			await engine[Symbol.asyncDispose]()
		})
	}
	t.end()
}

/** The next `count` jobs. */
async function claimed(queue: RunQueue, count: number): Promise<Lease[]> {
	using claimer = new Claimer(queue, () => count)
	const leases: Lease[] = []
	while (leases.length < count) leases.push(await claimer.next())
	return leases
}

/** Asks for one job at a time. Ends its claim when disposed; its leases stay. */
class Claimer implements Disposable {
	readonly #end = new AbortController()
	readonly #leases: AsyncIterator<Lease>

	constructor(queue: RunQueue, max: () => number) {
		this.#leases = queue.claim(max, this.#end.signal)[Symbol.asyncIterator]()
	}

	async next(): Promise<Lease> {
		const { value, done } = await this.#leases.next()
		if (done) throw new Error('the claim has ended')
		return value
	}

	[Symbol.dispose](): void {
		this.#end.abort()
	}
}
