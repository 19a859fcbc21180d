import t from 'tap'
import { AgedMap } from '../../../core/util/aged-map.ts'

void t.test('entries are taken in the order in which they were last set', (t) => {
	const map = new AgedMap<string, number>()
	map.set('a', 1).set('b', 2).set('c', 3).set('a', 4)
	t.strictSame(map.takeOldest(), ['b', 2])
	map.set('c', 5).set('d', 6)
	map.delete('a')
	t.strictSame(map.takeOldest(), ['c', 5])
	t.strictSame(map.takeOldest(), ['d', 6])
	t.equal(map.takeOldest(), undefined)
	map.set('e', 7)
	t.strictSame(map.takeOldest(), ['e', 7], 'an empty map can be used again')
	map.set('f', 8)
	map.clear()
	t.equal(map.takeOldest(), undefined)
	t.equal(map.size, 0)
	t.end()
})

void t.test('the order stays correct with any number of entries set between takes', (t) => {
	const map = new AgedMap<number, number>()
	let oldest = 0
	let newest = 0
	for (const [set, take] of [
		[10, 3],
		[2_000, 5],
		[1, 1_900],
		[30_000, 29_000],
		[0, 1_103],
	] as const) {
		for (let count = 0; count < set; count++) map.set(newest, newest++)
		const taken = Array.from({ length: take }, () => map.takeOldest()?.[0])
		t.strictSame(
			taken,
			taken.map(() => oldest++),
		)
	}
	t.equal(map.size, 0)
	t.end()
})
