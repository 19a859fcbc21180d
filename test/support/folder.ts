import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'

/** An empty folder below the temporary one, which only this user can read. It is removed after the test. */
export function testFolder(t: Pick<Test, 'teardown'>): string {
	const folder = mkdtempSync(join(tmpdir(), 'svc-test-'))
	t.teardown(() => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }))
	return folder
}
