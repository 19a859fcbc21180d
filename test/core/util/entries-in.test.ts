import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { entriesIn } from '../../../core/util/entries-in.ts'

void t.test('links are followed once, folders that are not entered and links to nowhere do no harm', async (t) => {
	const folder = mkdtempSync(join(tmpdir(), 'svc-entries-'))
	t.teardown(() => rmSync(folder, { recursive: true }))
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
