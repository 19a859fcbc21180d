/** Which files of a home a backup contains besides the database. */
import { constants } from 'node:fs'
import { lstat, open, readdir, realpath } from 'node:fs/promises'
import type { FileHandle } from 'node:fs/promises'
import { dirname, join, sep } from 'node:path'
import { Fault } from '../errors.ts'
import { isMemberPath, maxFileBytes, maxFiles, settingsName } from './manifest.ts'

export interface Collected {
	files: { path: string; source: string; bytes: number; executable: boolean }[]
	/** A sentence for each item that is omitted. */
	left_out: string[]
}

const deepest = 64
/** Links may point here only: not to a key, which may be omitted on purpose, nor to the database, which is being written. */
const linkTargets = ['config', 'plugins', 'skills']
/** The link by which editors and tests of a plugin find the gateway. */
const gatewayLink = /^plugins\/[^/]+\/node_modules\/svc-gateway$/

/**
 * gateway.yaml, and the contents of plugins/ and skills/. A link is followed if it points to a file of the home; any
 * other entry that is not a regular file is omitted and named. Backups in these folders are omitted: `partial` is a
 * folder among them. Throws `backup_failed` if there is more than a backup can hold.
 */
export async function collectFiles(home: string, partial: string): Promise<Collected> {
	const root = await realpath(home)
	const backups = dirname(await realpath(partial))
	const found: Collected = { files: [], left_out: [] }
	let bytes = 0

	const add = async (path: string): Promise<void> => {
		const source = join(root, path)
		const entry = await lstat(source).catch(absent)
		if (!entry) return
		// `svc plugins` creates it again.
		if (entry.isSymbolicLink() && gatewayLink.test(path)) return
		if (!isMemberPath(path)) return void found.left_out.push(`${path}: an archive cannot store this name`)
		// Even if the entry is not a link, one of its parent folders may be.
		const real = await realpath(source).catch(broken)
		if (real === undefined) return void found.left_out.push(`${path}: a broken link`)
		if (!real.startsWith(root + sep)) return void found.left_out.push(`${path}: a link that leads out of the home`)
		const [top = ''] = real.slice(root.length + 1).split(sep)
		if (!linkTargets.includes(top))
			return void found.left_out.push(`${path}: a link to something that is not one of the files of the home`)
		const file = await lstat(real).catch(absent)
		if (!file?.isFile()) return void found.left_out.push(`${path}: not a file`)
		bytes += file.size
		found.files.push({ path, source: real, bytes: file.size, executable: (file.mode & 0o100) !== 0 })
		if (found.files.length + found.left_out.length > maxFiles || bytes > maxFileBytes) {
			throw new Fault(
				'backup_failed',
				`plugins/ and skills/ of the home contain more than ${maxFiles} files or ${maxFileBytes} bytes; move files elsewhere that can be created again, such as installed packages`,
			)
		}
	}

	const walk = async (folder: string, depth: number): Promise<void> => {
		const entries = await readdir(join(root, folder), { withFileTypes: true }).catch(absent)
		for (const entry of entries ?? []) {
			const path = `${folder}/${entry.name}`
			if (join(root, path) === backups) continue
			if (!entry.isDirectory()) await add(path)
			else if (depth < deepest) await walk(path, depth + 1)
			else found.left_out.push(`${path}: nested too deeply`)
		}
	}

	await add(settingsName)
	for (const folder of ['plugins', 'skills']) {
		const entry = await lstat(join(root, folder)).catch(absent)
		if (entry?.isDirectory()) await walk(folder, 1)
		else if (entry) found.left_out.push(`${folder}: not a folder`)
	}
	return found
}

/** Opens a file for reading; undefined if it was removed, or replaced by a link. Does not block on a pipe. */
export async function openPlain(path: string): Promise<FileHandle | undefined> {
	return open(path, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0)).catch(broken)
}

function absent(error: NodeJS.ErrnoException): undefined {
	if (error.code !== 'ENOENT' && error.code !== 'ENOTDIR') throw error
}

/** For a path that is gone, or a link that leads nowhere or cannot be followed. */
function broken(error: NodeJS.ErrnoException): undefined {
	if (error.code !== 'ELOOP') absent(error)
}
