import t from 'tap'
import { batches, filesOf } from '../batches/table.ts'

void t.test('every test file is in one batch', (t) => {
	const inBatches = Object.values(batches).flatMap(filesOf).toSorted()
	t.strictSame(inBatches, filesOf(['test/**/*.test.ts']), 'see test/batches/table.ts')
	t.end()
})
