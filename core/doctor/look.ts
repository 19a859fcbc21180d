/** Looking at files that may not be there. */
import { lstat } from 'node:fs/promises'
import type { Stats } from 'node:fs'

/** Entries of keys/ that are looked at; it holds a handful. */
export const MOST_KEYS = 1_000

/** Of the file itself, not of what a link leads to. Undefined where there is none. */
export async function look(path: string): Promise<Stats | undefined> {
	return lstat(path).catch((thrown: NodeJS.ErrnoException) => {
		if (thrown.code === 'ENOENT' || thrown.code === 'ENOTDIR') return undefined
		throw thrown
	})
}
