import { existsSync } from 'node:fs'
import t from 'tap'
import { batches } from '../batches/table.ts'
import { filesOf } from '../batches/together.ts'

void t.test('every test file is in one batch, and every batch is run', (t) => {
	const inBatches = Object.values(batches).flatMap(filesOf).toSorted()
	const all = filesOf(['test/**/*.test.ts']).filter((path) => !path.startsWith('test/batches/'))
	t.strictSame(inBatches, all)
	for (const name of Object.keys(batches))
		t.ok(existsSync(new URL(`../batches/${name}.test.ts`, import.meta.url)), name)
	t.end()
})
