import { lchown, lstat, readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'

/**
 * If this process runs as root, gives the created file or folder to the owner of the home, who could not use it otherwise. Does
 * nothing for other users, or if the path does not exist. Links are not followed.
 */
export async function giveToOwner(home: string, created: string): Promise<void> {
	if (process.getuid?.() !== 0) return
	const { uid, gid } = await stat(home)
	if (uid === 0) return
	const give = async (path: string): Promise<void> => {
		const found = await lstat(path).catch(() => undefined)
		if (!found) return
		// Children first: meanwhile the folder still belongs to root, and no other user can add entries to it.
		if (found.isDirectory()) for (const name of await readdir(path)) await give(join(path, name))
		if (found.uid === 0) await lchown(path, uid, gid)
	}
	await give(created)
}
