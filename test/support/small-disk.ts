/** Real disks that are full soon. */
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'

/** Whether this user may mount a disk. */
export const canMount = ((): boolean => {
	const folder = mkdtempSync(join(tmpdir(), 'svc-disk-'))
	try {
		if (spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', folder]).status !== 0) return false
		execFileSync('umount', [folder])
		return true
	} finally {
		rmSync(folder, { recursive: true })
	}
})()

/** The folder of an empty disk of this size, such as `2m`; gone after the test. */
export function smallDisk(t: Test, size: string): string {
	const folder = mkdtempSync(join(tmpdir(), 'svc-disk-'))
	t.teardown(() => rmSync(folder, { recursive: true }))
	execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${size}`, 'tmpfs', folder])
	t.teardown(() => execFileSync('umount', [folder]))
	return folder
}
