import { deepStrictEqual as deepEqual } from 'node:assert/strict'
import type { Test } from 'tap'
import { isFault } from '../../../core/errors.ts'
import type { FaultCode } from '../../../core/errors.ts'
import type { Change, Engine, Entry, Key, ListOptions, Op, Store } from '../../../core/store/ports.ts'
import type { Open, StoreSuiteOptions } from '../store.ts'

export function recordSuite(t: Test, open: Open, { reopen }: StoreSuiteOptions): void {
	const test = (name: string, body: (t: Test, store: Store, engine: Engine) => Promise<void>): void => {
		void t.test(name, async (t) => {
			await using engine = await open()
			await body(t, engine.store, engine)
		})
	}

	test('reads back what was put, exactly', async (t, store) => {
		const value = {
			text: 'ü 漢 🚀 "\\ \n',
			half: '\ud83d',
			number: -1.5e-7,
			big: 2 ** 53 - 1,
			flag: false,
			nothing: null,
			list: [1, ['two', { three: [] }]],
			bytes: new Uint8Array([0, 255, 10]),
			inner: { more: new Uint8Array(0), ['__proto__']: 'kept' },
		}
		await store.put(['a', 'b'], value)
		t.strictSame((await store.get(['a', 'b']))?.value, value)
		for (const plain of [null, 0, '', 'text', [], {}, new Uint8Array([1])]) {
			await store.put(['a', 'plain'], plain)
			t.strictSame((await store.get(['a', 'plain']))?.value, plain)
		}
	})

	test('returns undefined for a missing key', async (t, store) => {
		await store.put(['a', 'b', 'c'], 1)
		t.equal(await store.get(['a', 'b']), undefined)
		t.equal(await store.get(['a', 'b', 'c', 'd']), undefined)
	})

	test('is not affected when callers modify values later', async (t, store) => {
		const value = { list: [1] }
		const written = store.put(['a'], value)
		value.list.push(2)
		await written
		const first = await store.get<{ list: number[] }>(['a'])
		first?.value.list.push(3)
		t.strictSame((await store.get(['a']))?.value, { list: [1] })
	})

	test('shares a record among its readers until it is written', async (t, store) => {
		const shared = async (key: Key): Promise<unknown> => (await store.getShared(key))?.value
		t.equal(await store.getShared(['a', 's']), undefined)
		await store.put(['a', 's'], { n: 1, list: [{ deep: true }], bytes: new Uint8Array([7]) })
		t.strictSame(await shared(['a', 's']), { n: 1, list: [{ deep: true }], bytes: new Uint8Array([7]) })
		t.strictSame(await store.getShared(['a', 's']), await store.get(['a', 's']))
		for (let n = 2; n < 20; n++) {
			const written = store.put(['a', 's'], { n })
			// A read during the write must not keep the old value.
			const early = (await shared(['a', 's'])) as { n: number }
			t.ok(early.n === n || early.n === n - 1)
			await written
			t.strictSame(await shared(['a', 's']), { n })
			t.strictSame(await shared(['a', 's']), { n })
		}
		await store.commit('a', [
			{ key: ['a', 's'], value: undefined },
			{ key: ['a', 'other'], value: 1 },
		])
		t.equal(await shared(['a', 's']), undefined)
		t.equal(await shared(['a', 'other']), 1)
		await store.create(['a', 's'], 'again')
		t.equal(await shared(['a', 's']), 'again')
		await rejects(t, (async () => store.getShared([] as never))(), 'invalid_request')
	})

	test('freezes a shared record except its bytes', async (t, store) => {
		await store.put(['a'], { list: [{ deep: true }], bytes: new Uint8Array([7]) })
		for (const time of ['first', 'second']) {
			const entry = await store.getShared<{ list: object[] }>(['a'])
			const parts = [entry, entry?.key, entry?.value, entry?.value.list, entry?.value.list[0]]
			t.ok(parts.every(Object.isFrozen), `read for the ${time} time`)
		}
		t.notOk(Object.isFrozen((await store.get(['a']))?.value))
	})

	test('changes the revision with every write, and never repeats one', async (t, store) => {
		const revs = [await store.put(['a'], 1), await store.put(['a'], 1)]
		t.equal((await store.get(['a']))?.rev, revs[1])
		await store.delete(['a'])
		revs.push(await store.create(['a'], 1))
		revs.push(...(await store.commit('a', [{ key: ['a'], value: 2 }])))
		t.equal((await store.get(['a']))?.rev, revs[3])
		t.equal(new Set(revs).size, 4)
	})

	test('creates a key once', async (t, store) => {
		const tries = await Promise.allSettled(Array.from({ length: 20 }, (_, i) => store.create(['a', 'one'], i)))
		t.equal(tries.filter(({ status }) => status === 'fulfilled').length, 1)
		t.equal((await store.get(['a', 'one']))?.value, 0)
		await rejects(t, store.create(['a', 'one'], 9), 'conflict')
		await store.delete(['a', 'one'])
		await store.create(['a', 'one'], 10)
	})

	test('updates a key only at the expected revision', async (t, store) => {
		const first = await store.put(['a'], 1)
		const second = await store.update(['a'], 2, first)
		await rejects(t, store.update(['a'], 3, first), 'conflict')
		await rejects(t, store.update(['nowhere'], 3, first), 'conflict')
		t.strictSame(await store.get(['a']), { key: ['a'], value: 2, rev: second })
	})

	test('deletes a key, and ignores a missing one', async (t, store) => {
		const rev = await store.put(['a', 'x'], 1)
		await rejects(t, store.delete(['a', 'x'], 'another'), 'conflict')
		await store.delete(['a', 'x'], rev)
		t.equal(await store.get(['a', 'x']), undefined)
		await store.delete(['a', 'x'])
		await rejects(t, store.delete(['a', 'x'], rev), 'conflict')
	})

	test('adds up exactly when 50 writers change one key at once', async (t, store) => {
		await store.put(['counter'], 0)
		const add = async (): Promise<void> => {
			for (;;) {
				const { value, rev } = (await store.get<number>(['counter'])) as Entry<number>
				try {
					await store.update(['counter'], value + 1, rev)
					return
				} catch (error) {
					if (!isFault(error, 'conflict')) throw error
				}
			}
		}
		await Promise.all(Array.from({ length: 50 }, add))
		t.equal((await store.get(['counter']))?.value, 50)
	})

	test('commits all or nothing', async (t, store) => {
		const rev = await store.put(['s', 'old'], 1)
		const revs = await store.commit('s', [
			{ key: ['s', 'new'], value: 'n', expect: null },
			{ key: ['s', 'old'], value: undefined, expect: rev },
			{ key: ['s'], value: 'scope' },
		])
		t.equal(revs.length, 3)
		t.strictSame(await keys(store, ['s']), [['s'], ['s', 'new']])
		t.equal((await store.get(['s', 'new']))?.rev, revs[0])

		const ops: Op[] = Array.from({ length: 20 }, (_, i) => ({ key: ['s', `bulk${i}`], value: i }))
		for (const expect of [null, rev]) {
			await rejects(t, store.commit('s', [...ops, { key: ['s', 'new'], value: 'lost', expect }]), 'conflict')
			await rejects(t, store.commit('s', [...ops, { key: ['s', 'old'], value: 'lost', expect: rev }]), 'conflict')
		}
		t.strictSame(await keys(store, ['s']), [['s'], ['s', 'new']])
		t.equal((await store.get(['s', 'new']))?.value, 'n')
	})

	test('commits only if its checks hold', async (t, store) => {
		const rev = await store.put(['s', 'there'], 1)
		const write = (n: number): Op => ({ key: ['s', 'new'], value: n })
		const there: Key = ['s', 'there']
		const absent: Key = ['s', 'absent']
		for (const check of [
			{ key: there },
			{ key: there, expect: rev },
			{ key: absent, expect: null },
		] satisfies Partial<Op>[]) {
			const revs = await store.commit('s', [{ ...check, check: true }, write(1)])
			t.strictSame(revs, [(await store.get(['s', 'new']))?.rev], 'a check has no revision')
		}
		for (const check of [
			{ key: absent },
			{ key: absent, expect: rev },
			{ key: there, expect: null },
			{ key: there, expect: 'another' },
		] satisfies Partial<Op>[])
			await rejects(t, store.commit('s', [write(2), { ...check, check: true }]), 'conflict')
		t.strictSame(await values(store, ['s']), [1, 1])
		t.equal((await store.get(there))?.rev, rev, 'a check does not change the record')

		// A commit sees what was accepted before it, durable or not.
		const [deleted, late] = await Promise.allSettled([
			store.delete(there),
			store.commit('s', [write(3), { key: there, check: true }]),
		])
		t.match([deleted, late], [{ status: 'fulfilled' }, { status: 'rejected', reason: { code: 'conflict' } }])
		await store.put(there, 2)
		const many = Array.from({ length: 100 }, (_, i): Op => ({ key: ['s', `k${i}`], value: i }))
		t.equal(
			(await store.commit('s', [...many, { key: there, check: true }])).length,
			100,
			'a check does not count as a write',
		)
		await rejects(
			t,
			store.commit('s', [
				{ key: there, value: 3 },
				{ key: there, check: true },
			]),
			'invalid_request',
		)
	})

	test('lets one of several commits on the same keys win', async (t, store) => {
		const commits = Array.from({ length: 10 }, (_, i) =>
			store.commit('s', [
				{ key: ['s', 'a'], value: i, expect: null },
				{ key: ['s', 'b'], value: i, expect: null },
			]),
		)
		const outcomes = await Promise.allSettled(commits)
		t.equal(outcomes.filter(({ status }) => status === 'fulfilled').length, 1)
		t.strictSame(await values(store, ['s']), [0, 0])
	})

	test('refuses an invalid commit', async (t, store) => {
		const many = (count: number): Op[] => Array.from({ length: count }, (_, i) => ({ key: ['s', `k${i}`], value: i }))
		await store.commit('s', many(100))
		await rejects(t, store.commit('s', many(101)), 'invalid_request')
		await rejects(t, store.commit('s', [{ key: ['other', 'k'], value: 1 }]), 'invalid_request')
		const twice: Op[] = [
			{ key: ['s', 'k'], value: 1 },
			{ key: ['s', 'k'], value: 2 },
		]
		await rejects(t, store.commit('s', twice), 'invalid_request')
		t.strictSame(await store.commit('s', []), [])
	})

	test('refuses invalid keys and values', async (t, store) => {
		const none = [[], [''], ['a', ''], ['a\0b'], ['a', '\ud800'], ['k'.repeat(1001)], ['ü'.repeat(501)]] as unknown[]
		for (const key of none as Key[]) {
			await rejects(t, store.put(key, 1), 'invalid_request')
			await rejects(t, store.get(key), 'invalid_request')
		}
		const loop: { loop?: unknown } = {}
		loop.loop = loop
		for (const value of [undefined, () => 1, 10n, loop]) await rejects(t, store.put(['a'], value), 'invalid_request')
		await rejects(t, store.put(['a'], 'x'.repeat(8 * 1024 * 1024)), 'payload_too_large')
		await rejects(t, store.put(['a'], new Uint8Array(8 * 1024 * 1024)), 'payload_too_large')
		t.strictSame(await keys(store, ['a']), [])
	})

	test('accepts keys and values up to the limits', async (t, store) => {
		await store.put(['k'.repeat(1000)], 1)
		t.equal((await store.get(['k'.repeat(1000)]))?.value, 1)
		const long = 'x'.repeat(8 * 1024 * 1024 - 2)
		await store.put(['long'], long)
		t.ok((await store.get(['long']))?.value === long)
		const bytes = new Uint8Array(7 * 1024 * 1024).fill(7)
		await store.put(['long'], { bytes })
		t.ok(Buffer.from(bytes).equals((await store.get<{ bytes: Uint8Array }>(['long']))?.value.bytes ?? new Uint8Array()))
	})

	test('lists the keys under a prefix, by whole parts and in byte order', async (t, store) => {
		const sorted: Key[] = [
			['a'],
			['a', '\u0001'],
			['a', 'B'],
			['a', 'a'],
			['a', 'a', 'x'],
			['a', 'a!'],
			['a', 'ü'],
			['a', '\uffee'],
			['a', '😀'],
		]
		for (const key of sorted.toReversed()) await store.put(key, key.length)
		for (const key of [['a\u0001'], ['ab'], ['ab', 'a'], ['A'], ['b']] as Key[]) await store.put(key, 'not under a')
		t.strictSame(await keys(store, ['a']), sorted)
		t.strictSame(await keys(store, ['a', 'a']), [
			['a', 'a'],
			['a', 'a', 'x'],
		])
		t.strictSame(await keys(store, ['a'], { reverse: true }), sorted.toReversed())
		t.strictSame(await keys(store, ['nothing']), [])
	})

	test('lists in pages, in both directions', async (t, store) => {
		const all: Key[] = Array.from({ length: 700 }, (_, i) => ['p', String(i).padStart(4, '0')])
		for (const some of [all.slice(0, 300), all.slice(300, 400), all.slice(400)])
			await Promise.all(some.map((key) => store.put(key, key[1])))
		t.strictSame(await keys(store, ['p']), all)
		t.strictSame(await keys(store, ['p'], { reverse: true }), all.toReversed())
		t.strictSame(await keys(store, ['p'], { limit: 3 }), all.slice(0, 3))
		t.strictSame(await keys(store, ['p'], { limit: 300, after: ['p', '0100'] }), all.slice(101, 401))
		t.strictSame(await keys(store, ['p'], { after: ['p', '0697', 'between'] }), all.slice(698))
		t.strictSame(await keys(store, ['p'], { reverse: true, limit: 2, after: ['p', '0100'] }), [all[99], all[98]])
		t.strictSame(await keys(store, ['p'], { reverse: true, limit: 1, after: ['p', '0100', 'x'] }), [all[100]])
		t.strictSame(await keys(store, ['p'], { after: ['z'] }), [])
		t.strictSame(await keys(store, ['p'], { after: ['a'], limit: 1 }), [all[0]])
		t.strictSame(await keys(store, ['p'], { after: ['a'], reverse: true }), [])
		t.strictSame(await keys(store, ['p'], { after: ['z'], reverse: true, limit: 1 }), [all[699]])
		t.strictSame(await keys(store, ['p'], { limit: 0 }), [])
	})

	test('continues a listing while its entries are deleted', async (t, store) => {
		for (let i = 0; i < 300; i++) await store.put(['d', String(i).padStart(3, '0')], i)
		let count = 0
		for await (const { key } of store.list(['d'])) {
			count++
			await store.delete(key)
		}
		t.equal(count, 300)
		t.strictSame(await keys(store, ['d']), [])
	})

	test('shows every write that was acknowledged before the read', async (t, store) => {
		await Promise.all(
			Array.from({ length: 50 }, async (_, i) => {
				await store.put(['r', String(i)], 1)
				t.equal((await store.get(['r', String(i)]))?.value, 1)
				await store.put(['r', String(i)], 2)
				const listed = await keys(store, ['r', String(i)])
				t.equal(listed.length, 1)
				await store.delete(['r', String(i)])
				t.equal(await store.get(['r', String(i)]), undefined)
				t.strictSame(await keys(store, ['r', String(i)]), [])
			}),
		)
	})

	test('notifies a watcher of every change under its prefix, in order', async (t, store) => {
		await store.put(['w', 'before'], 0)
		const changes: Change<unknown>[] = []
		const others: Change<unknown>[] = []
		const stop = store.watch(['w', 'x'], (change) => changes.push(change))
		store.watch(['w', 'other'], (change) => others.push(change))
		store.watch(['w', 'x'], () => {
			throw new Error('a watcher that throws affects no others')
		})
		const first = await store.put(['w', 'x'], { n: 1 })
		const [second, third] = await store.commit('w', [
			{ key: ['w', 'x', 'deep'], value: 2 },
			{ key: ['w', 'x'], value: undefined },
		])
		await rejects(t, store.create(['w', 'x', 'deep'], 3), 'conflict')
		await store.put(['w', 'xx'], 4)
		await store.delete(['w', 'x', 'never there'])
		const many = await Promise.all(Array.from({ length: 20 }, (_, i) => store.put(['w', 'x'], i)))
		stop()
		await store.put(['w', 'x'], 'unheard')
		t.strictSame(changes.slice(0, 3), [
			{ key: ['w', 'x'], value: { n: 1 }, rev: first },
			{ key: ['w', 'x', 'deep'], value: 2, rev: second },
			{ key: ['w', 'x'], rev: third },
		])
		t.strictSame(
			changes.slice(3).map(({ value, rev }) => [value, rev]),
			many.map((rev, i) => [i, rev]),
		)
		t.strictSame(others, [])
	})

	if (reopen) {
		void t.test('keeps its records and never reuses a revision after it was reopened', async (t) => {
			let engine = await open()
			const revs = new Set<string>()
			for (let round = 0; round < 3; round++) {
				for (let i = 0; i < 5; i++) revs.add(await engine.store.put(['k'], { round, i }))
				revs.add(await engine.store.put(['gone'], round))
				await engine.store.delete(['gone'])
				engine = await reopen(engine)
				t.strictSame((await engine.store.get(['k']))?.value, { round, i: 4 })
				t.equal(await engine.store.get(['gone']), undefined)
			}
			t.equal(revs.size, 18)
			await engine[Symbol.asyncDispose]()
		})
	}

	void t.test('lists each scope once, for a copy', async (t) => {
		await using engine = await open()
		if (!engine.contents) return
		const scopes = ['a', 'a\u0001', 'ab', 'b', '\uffee', '😀']
		for (const scope of scopes)
			for (const key of [[scope], [scope, 'x'], [scope, '\u0001', 'y']] as Key[]) await engine.store.put(key, 1)
		await engine.store.put(['gone'], 1)
		await engine.store.delete(['gone'])
		t.strictSame((await Array.fromAsync(engine.contents.scopes())).toSorted(), scopes.toSorted())
	})

	void t.test('refuses to work once it is closed', async (t) => {
		const engine = await open()
		await engine.store.put(['a'], 1)
		await engine.store.getShared(['a'])
		await engine[Symbol.asyncDispose]()
		await rejects(t, engine.store.put(['a'], 2), 'unavailable')
		await rejects(t, engine.store.get(['a']), 'unavailable')
		await rejects(t, (async () => engine.store.getShared(['a']))(), 'unavailable')
		await rejects(t, keys(engine.store, ['a']), 'unavailable')
	})
	t.end()
}

export async function rejects(t: Test, promise: Promise<unknown>, code: FaultCode): Promise<void> {
	await t.rejects(promise, { code }, code)
}

/** The keys that both ways of listing return. */
async function keys(store: Store, prefix: Key, options?: ListOptions): Promise<Key[]> {
	const found: Key[] = []
	for await (const { key } of store.list(prefix, options)) found.push(key)
	deepEqual(await Array.fromAsync(store.keys(prefix, options)), found)
	return found
}

async function values(store: Store, prefix: Key): Promise<unknown[]> {
	const found: unknown[] = []
	for await (const { value } of store.list(prefix)) found.push(value)
	return found
}
