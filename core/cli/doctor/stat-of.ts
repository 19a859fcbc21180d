/** Reads the status of files that may not exist. */
import { lstat } from 'node:fs/promises'
import type { Stats } from 'node:fs'

/** Entries of keys/ that are checked; it holds a handful. */
export const MOST_KEYS = 1_000

/** Of the file itself, not of a link's target. Undefined if there is none. */
export async function statOf(path: string): Promise<Stats | undefined> {
	return lstat(path).catch((thrown: NodeJS.ErrnoException) => {
		if (thrown.code === 'ENOENT' || thrown.code === 'ENOTDIR') return undefined
		throw thrown
	})
}
