import { lchown, lstat, readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'

/**
 * Root gives what it made to the user whose home it is, who else could not use it. Nothing happens for other users, or
 * where it is not there. Links are not followed.
 */
export async function giveToOwner(home: string, made: string): Promise<void> {
	if (process.getuid?.() !== 0) return
	const { uid, gid } = await stat(home)
	if (uid === 0) return
	const give = async (path: string): Promise<void> => {
		const found = await lstat(path).catch(() => undefined)
		if (!found) return
		// From within: its folder is still root's meanwhile, and nobody else puts something into it.
		if (found.isDirectory()) for (const name of await readdir(path)) await give(join(path, name))
		if (found.uid === 0) await lchown(path, uid, gid)
	}
	await give(made)
}
