import type { StatsFs } from 'node:fs'
import { statfs } from 'node:fs/promises'
import { dirname } from 'node:path'
import { error, ok, warning } from '../contract.ts'
import type { Check } from '../contract.ts'

const MIB = 1024 * 1024
/** Warn if less than this above the limit is free. */
const SOON_MIB = 256

export const diskChecks: Check[] = [
	{
		id: 'disk.free',
		about: 'free disk for the store',
		async run(context) {
			const { path, min_free_mib, url } = (await context.config()).store
			if (url !== null) return []
			const found = await statOf(path)
			const free = Math.floor((found.bavail * found.bsize) / MIB)
			const todo = `free some space on the disk of ${path}, or move the store: store.path in gateway.yaml`
			if (free < min_free_mib)
				return error(
					`the disk has ${free} MiB free, and below ${min_free_mib} MiB (store.min_free_mib) writes are refused`,
					todo,
				)
			// Some file systems have no fixed number of files, and report 0 of 0.
			if (found.files > 0 && found.ffree === 0) return error('the disk cannot hold more files', todo)
			if (free < min_free_mib + SOON_MIB)
				return warning(`the disk has ${free} MiB free; below ${min_free_mib} MiB writes are refused`, todo)
			return ok(`the store's disk has ${free > 10 * 1024 ? `${Math.floor(free / 1024)} GiB` : `${free} MiB`} free`)
		},
	},
]

/** Of the nearest existing folder. */
async function statOf(path: string): Promise<StatsFs> {
	try {
		return await statfs(path)
	} catch (thrown) {
		if ((thrown as NodeJS.ErrnoException).code !== 'ENOENT' || dirname(path) === path) throw thrown
		return statOf(dirname(path))
	}
}
