import t from 'tap'
import { BoundedMap } from '../../../core/util/bounded-map.ts'

void t.test('above its limit, a bounded map drops the least recently used entry', (t) => {
	const map = new BoundedMap<string, number>(2)
	map.set('a', 1).set('b', 2)
	t.equal(map.get('a'), 1)
	map.set('c', 3)
	t.strictSame(
		[...map],
		[
			['a', 1],
			['c', 3],
		],
	)
	map.set('a', 4).set('d', 5)
	t.strictSame([...map.keys()], ['a', 'd'])
	t.equal(map.get('c'), undefined)
	t.end()
})

void t.test('below half of the limit, reads do not change the order', (t) => {
	const map = new BoundedMap<string, number>(4)
	map.set('a', 1).set('b', 2)
	t.equal(map.get('a'), 1)
	t.strictSame([...map.keys()], ['a', 'b'])
	map.set('c', 3)
	t.equal(map.get('a'), 1)
	t.strictSame([...map.keys()], ['b', 'c', 'a'])
	t.end()
})
