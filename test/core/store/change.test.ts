import t from 'tap'
import { change, changeRecord } from '../../../core/store/change.ts'
import { openMemory } from '../../support/memory-engine.ts'
import type { Key } from '../../../core/store/ports.ts'

const key: Key = ['s', 'counter']

void t.test('concurrent changes are all applied', async (t) => {
	const { store } = openMemory()
	const add = (): Promise<number> =>
		change(store, 's', async () => {
			const entry = await store.get<number>(key)
			const result = (entry?.value ?? 0) + 1
			return { ops: [{ key, value: result, expect: entry?.rev ?? null }], result }
		})
	const results = await Promise.all(Array.from({ length: 50 }, add))
	t.equal((await store.get(key))?.value, 50)
	t.strictSame(
		results.toSorted((a, b) => a - b),
		Array.from({ length: 50 }, (_, n) => n + 1),
		'each returns the value that it has written',
	)
})

void t.test('a change fails after 100 conflicts', async (t) => {
	const { store } = openMemory()
	let decisions = 0
	const outcome = change(store, 's', async () => {
		const rev = await store.put(key, decisions++)
		await store.put(key, 'of somebody else')
		return { ops: [{ key, value: 'mine', expect: rev }], result: null }
	})
	await t.rejects(outcome, { code: 'conflict' })
	t.equal(decisions, 100)
	t.equal((await store.get(key))?.value, 'of somebody else')
})

void t.test('a decision may write nothing, and its error ends the change', async (t) => {
	const { store } = openMemory()
	const before = await store.put(key, 1)
	t.equal(await change(store, 's', () => ({ result: 'as it is' })), 'as it is')
	t.equal(await change(store, 's', () => ({ ops: [], result: 'as it is' })), 'as it is')
	let decisions = 0
	const refused = change(store, 's', async () => {
		decisions++
		throw Object.assign(new Error('no'), { code: 'conflict' })
	})
	await t.rejects(refused, { message: 'no' })
	t.equal(decisions, 1)
	t.equal((await store.get(key))?.rev, before)
})

void t.test('a record is created, changed together with others, or left unchanged', async (t) => {
	const { store } = openMemory()
	const other: Key = ['s', 'other']
	const add = (): Promise<number> =>
		changeRecord<number, number>(store, key, (count = 0) => ({
			next: count + 1,
			ops: [{ key: other, value: `beside ${count + 1}` }],
			result: count,
		}))
	t.strictSame(
		(await Promise.all([add(), add(), add()])).toSorted((a, b) => a - b),
		[0, 1, 2],
		'concurrent changes are all applied',
	)
	t.equal((await store.get(key))?.value, 3)
	t.equal((await store.get(other))?.value, 'beside 3')
	const before = await store.get(key)
	t.equal(await changeRecord<number, string>(store, key, () => ({ result: 'as it is' })), 'as it is')
	await changeRecord<number, undefined>(store, key, () => ({ ops: [{ key: other, value: 4 }], result: undefined }))
	t.strictSame(await store.get(key), before)
	t.equal((await store.get(other))?.value, 4)
})
