import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'

/** A folder for the tests of one file, removed when they end. */
export function testFolder(t: Test): string {
	const folder = mkdtempSync(join(tmpdir(), 'store-'))
	t.teardown(() => rmSync(folder, { recursive: true, force: true }))
	return folder
}
