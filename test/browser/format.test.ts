import t from 'tap'
import { duration } from '../../plugins/console/web/format.ts'

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
