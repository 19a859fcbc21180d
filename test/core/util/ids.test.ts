import t from 'tap'
import { idAfter, newId, timeOfId } from '../../../core/util/ids.ts'

void t.test('ids are UUIDv7, unique and strictly increasing, also within a millisecond', async (t) => {
	const ids = Array.from({ length: 20_000 }, newId)
	t.equal(new Set(ids).size, ids.length)
	t.strictSame(ids, ids.toSorted())
	t.ok(ids.every((id) => /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/.test(id)))
})

void t.test('an id contains the time of its creation', async (t) => {
	const before = Date.now()
	const time = Number.parseInt(newId().replace('-', '').slice(0, 12), 16)
	// Creating many ids at once may advance their clock by a few milliseconds.
	t.ok(time >= before && time < before + 1_000)
})

void t.test('idAfter returns an id that sorts after another one', (t) => {
	let id = 'ffffffff-fff0-7ffe-8000-000000000000'
	for (const time of [0xfffffffffff0, 0xfffffffffff1, 0xfffffffffff1]) {
		const next = idAfter(id)
		t.ok(next > id, next)
		t.equal(timeOfId(next), time)
		id = next
	}
	t.end()
})
