/** Appends to the log with a change of records. */
import type { Test } from 'tap'
import type { Engine, RecordChange } from '../../../core/store/ports.ts'
import type { Open, StoreSuiteOptions } from '../store.ts'
import { entry } from './log.ts'
import { rejects } from './records.ts'

const key = ['s', 'run'] as const

/** Sets the record to `value`, unless it was written in between. */
function setting(engine: Engine, value: unknown, calls: unknown[] = []): RecordChange {
	return {
		scope: 's',
		async ops() {
			const found = await engine.store.get(key)
			calls.push(found?.value)
			return [{ key, value, expect: found?.rev ?? null }]
		},
	}
}

export function recordChangeSuite(t: Test, open: Open, { reopen }: StoreSuiteOptions): void {
	const test = (name: string, body: (t: Test, engine: Engine) => Promise<void>): void => {
		void t.test(name, async (t) => {
			await using engine = await open()
			await body(t, engine)
		})
	}

	test('writes events and records', async (t, engine) => {
		const { log, store } = engine
		await log.append('r', 0, [entry('r', 1), entry('r', 2)], setting(engine, 'first'))
		t.equal((await store.get(key))?.value, 'first')
		await log.append('r', 2, [{ ...entry('r', 3), step: 'step' }], {
			scope: 's',
			ops: async () => [
				{ key, value: undefined },
				{ key: ['s', 'other'], value: 1, expect: null },
			],
		})
		t.equal(await store.get(key), undefined)
		t.equal((await store.get(['s', 'other']))?.value, 1)
		t.match(await log.journal('r'), { last: 3, steps: ['step'] })
		await log.append('r', 3, [entry('r', 4)], { scope: 's', ops: async () => [] })
		t.equal((await log.journal('r')).last, 4)
	})

	test('a change of a record reaches readers that share it', async (t, engine) => {
		const { log, store } = engine
		await store.put(key, 'before')
		t.equal((await store.getShared(key))?.value, 'before')
		await log.append('r', 0, [entry('r', 1)], setting(engine, 'after'))
		t.equal((await store.getShared(key))?.value, 'after')
	})

	test('shows the changed records to subscribers of the events', async (t, engine) => {
		const read: Promise<unknown>[] = []
		const order: string[] = []
		engine.log.subscribe((_, { sequence }) => {
			order.push(`event ${sequence}`)
			read.push(engine.store.get(key).then((found) => found?.value))
		})
		engine.store.watch(key, ({ value }) => order.push(`record ${String(value)}`))
		await Promise.all([
			engine.log.append('r', 0, [entry('r', 1)], setting(engine, 1)),
			engine.log.append('other', 0, [entry('other', 1)]),
		])
		await engine.log.append('r', 1, [entry('r', 2)], setting(engine, 2))
		const values = await Promise.all(read)
		t.equal(values.at(-1), 2)
		t.ok(order.indexOf('record 2') < order.indexOf('event 2'), order.join(', '))
		t.equal(order.filter((one) => one === 'event 2').length, 1)
	})

	test('recomputes the writes if a record was changed meanwhile', async (t, engine) => {
		const calls: unknown[] = []
		const change = setting(engine, 'by the append', calls)
		let isFirst = true
		await engine.log.append('r', 0, [entry('r', 1)], {
			scope: 's',
			async ops() {
				const ops = await change.ops()
				if (isFirst) await engine.store.put(key, 'by another writer')
				isFirst = false
				return ops
			},
		})
		t.strictSame(calls, [undefined, 'by another writer'])
		t.equal((await engine.store.get(key))?.value, 'by the append')
		t.equal((await engine.log.read({ run_id: 'r' }, null, 10)).entries.length, 1)
	})

	test('lets appends to many runs change one record', async (t, engine) => {
		const add: RecordChange = {
			scope: 's',
			async ops() {
				const found = await engine.store.get<number>(key)
				return [{ key, value: (found?.value ?? 0) + 1, expect: found?.rev ?? null }]
			},
		}
		const runs = Array.from({ length: 20 }, (_, n) => `r${n}`)
		await Promise.all(runs.map((run) => engine.log.append(run, 0, [entry(run, 1)], add)))
		t.equal((await engine.store.get(key))?.value, runs.length)
	})

	test('writes nothing if the change or the append is refused', async (t, engine) => {
		const { log, store } = engine
		await log.append('r', 0, [entry('r', 1)], setting(engine, 'before'))
		const head = log.head()
		await rejects(t, log.append('r', 0, [entry('r', 2)], setting(engine, 'fenced')), 'fenced')
		const refusal = new Error('refused')
		await t.rejects(log.append('r', 1, [entry('r', 2)], { scope: 's', ops: () => Promise.reject(refusal) }), refusal)
		for (const ops of [
			[{ key: ['elsewhere', 'x'] as const, value: 1 }],
			[
				{ key, value: 1 },
				{ key, value: 2 },
			],
			[{ key, value: 1n }],
		])
			await rejects(t, log.append('r', 1, [entry('r', 2)], { scope: 's', ops: async () => ops }), 'invalid_request')
		t.equal((await store.get(key))?.value, 'before')
		t.equal(log.head(), head)
		await log.append('r', 1, [entry('r', 2)], setting(engine, 'after'))
		t.equal((await store.get(key))?.value, 'after')
	})

	test('gives up a change that conflicts each time', async (t, engine) => {
		const change = setting(engine, 'never')
		let calls = 0
		const overtaken: RecordChange = {
			scope: 's',
			async ops() {
				const ops = await change.ops()
				await engine.store.put(key, ++calls)
				return ops
			},
		}
		await rejects(t, engine.log.append('r', 0, [entry('r', 1)], overtaken), 'conflict')
		t.equal((await engine.store.get(key))?.value, calls)
	})

	if (reopen) {
		void t.test('keeps both', async (t) => {
			let engine = await open()
			await engine.log.append('r', 0, [entry('r', 1)], setting(engine, 'kept'))
			engine = await reopen(engine)
			t.equal((await engine.store.get(key))?.value, 'kept')
			t.equal((await engine.log.journal('r')).last, 1)
			await engine[Symbol.asyncDispose]()
		})
	}
	t.end()
}
