/** Mounts real file systems that are small, or that lose power. */
import { execFileSync, spawnSync } from 'node:child_process'
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
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

/** The folder of an empty disk of this size, such as `2m`. It is removed after the test. */
export function smallDisk(t: Test, size: string): string {
	const folder = mkdtempSync(join(tmpdir(), 'svc-disk-'))
	t.teardown(() => rmSync(folder, { recursive: true }))
	execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${size}`, 'tmpfs', folder])
	t.teardown(() => execFileSync('umount', [folder]))
	return folder
}

/** A disk with a journaling file system, as on most machines. */
export interface JournaledDisk {
	folder: string
	/** The folder of a copy with what would remain if the power failed now. */
	afterPowerCut(): string
	/** Makes the disk refuse writes, as after a hardware error. */
	becomeReadOnly(): void
}

/** Undefined if this user may not mount a file as a disk, or cannot make a file system. */
export function journaledDisk(t: Test, mebi = 16): JournaledDisk | undefined {
	const parts = mkdtempSync(join(tmpdir(), 'svc-disk-'))
	t.teardown(() => rmSync(parts, { recursive: true }))
	const mounted = (image: string): string | undefined => {
		const folder = `${image}-mounted`
		mkdirSync(folder)
		if (spawnSync('mount', ['-o', 'loop,errors=remount-ro', image, folder]).status !== 0) return undefined
		t.teardown(() => execFileSync('umount', [folder]))
		return folder
	}
	const image = join(parts, 'disk')
	writeFileSync(image, '')
	truncateSync(image, mebi * 1024 * 1024)
	if (spawnSync('mkfs.ext4', ['-q', '-F', image]).status !== 0) return undefined
	const folder = mounted(image)
	if (folder === undefined) return undefined
	return {
		folder,
		afterPowerCut() {
			// Data that is only in memory is not in the image.
			const copy = join(parts, 'copy')
			copyFileSync(image, copy)
			const found = mounted(copy)
			if (found === undefined) throw new Error(`${copy} cannot be mounted`)
			return found
		},
		becomeReadOnly() {
			const device = execFileSync('losetup', ['--noheadings', '--output', 'NAME', '--associated', image], {
				encoding: 'utf8',
			})
			writeFileSync(`/sys/fs/ext4/${basename(device.trim())}/trigger_fs_error`, 'a test')
		},
	}
}
