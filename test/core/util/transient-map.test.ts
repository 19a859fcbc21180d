import t from 'tap'
import { TransientMap } from '../../../core/util/transient-map.ts'

void t.test('a transient map has the entries that were set and not deleted, in order', (t) => {
	const map = new TransientMap<string, number>()
	map.set('a', 1)
	map.set('b', 2)
	map.set('c', 3)
	map.set('a', 4)
	t.strictSame([...map.values()], [4, 2, 3])
	t.equal(map.size, 3)
	t.equal(map.get('a'), 4)
	t.equal(map.delete('b'), true)
	t.equal(map.delete('b'), false)
	t.equal(map.has('b'), false)
	t.equal(map.get('b'), undefined)
	map.set('b', 5)
	t.strictSame([...map.values()], [4, 3, 5])
	t.end()
})

void t.test('entries can be deleted while the values are read', (t) => {
	const map = new TransientMap<number, number>()
	for (let n = 0; n < 100; n++) map.set(n, n)
	const seen: number[] = []
	for (const value of map.values()) {
		seen.push(value)
		map.delete(value)
		map.delete(value + 1)
	}
	t.strictSame(
		seen,
		Array.from({ length: 50 }, (_, n) => n * 2),
	)
	t.equal(map.size, 0)
	t.end()
})
