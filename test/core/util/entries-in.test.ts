import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { entriesIn } from '../../../core/util/entries-in.ts'
import { testFolder } from '../../support/folder.ts'

void t.test('links are followed once, and excluded folders and dangling links do no harm', async (t) => {
	const folder = testFolder(t)
	for (const path of ['a/b', 'skipped/deep', 'other']) mkdirSync(join(folder, path), { recursive: true })
	for (const path of ['a/b/one', 'skipped/two', 'other/three']) writeFileSync(join(folder, path), '')
	symlinkSync('..', join(folder, 'a/up'))
	symlinkSync('../other', join(folder, 'a/other'))
	symlinkSync('nowhere', join(folder, 'broken'))
	const found = [...entriesIn(folder, (path) => path !== 'skipped')].toSorted()
	t.strictSame(found.map((path) => path.replace(/^a\/other/, 'other')).toSorted(), [
		'a',
		'a/b',
		'a/b/one',
		'broken',
		'other',
		'other/three',
	])
})
