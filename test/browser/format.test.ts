import t from 'tap'
import { duration, json } from '../../plugins/console/web/format.ts'

void t.test('a duration never has 60 seconds or 60 minutes', async (t) => {
	t.equal(duration(59_960), '1 min 0 s')
	t.equal(duration(119_600), '1 min 59 s')
	t.equal(duration(3_599_800), '59 min 59 s')
	t.equal(duration(7_190_000), '1 h 59 min')
})

void t.test('a duration has at most two units', async (t) => {
	t.equal(duration(12), '12 ms')
	t.equal(duration(12_340), '12.3 s')
	t.equal(duration(90_000), '1 min 30 s')
	t.equal(duration(5_400_000), '1 h 30 min')
})

void t.test('JSON is indented, and other text stays as it is', async (t) => {
	t.equal(json('{"a":[1]}'), '{\n  "a": [\n    1\n  ]\n}')
	t.equal(json({ a: 1 }), '{\n  "a": 1\n}')
	t.equal(json('"a\\nb"'), '"a\\nb"', 'with its quotes and escapes')
	t.equal(json('a {b'), 'a {b')
})
