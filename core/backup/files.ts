import { createHash } from 'node:crypto'
import { lchown, lstat, open, readdir, stat, statfs } from 'node:fs/promises'
import type { FileHandle } from 'node:fs/promises'
import type { Readable } from 'node:stream'
import { join } from 'node:path'
import { Fault } from '../errors.ts'

/** The SHA-256 digest of the content, in hex, and its length. The content is written to `copy` in the same pass. */
export async function digested(
	content: AsyncIterable<Buffer>,
	copy?: FileHandle,
): Promise<{ bytes: number; sha256: string }> {
	const digest = createHash('sha256')
	let bytes = 0
	for await (const piece of content) {
		digest.update(piece)
		bytes += piece.length
		await copy?.writeFile(piece)
	}
	return { bytes, sha256: digest.digest('hex') }
}

/** Reads an open file, which stays open, in pieces of 256 KiB. */
export function piecesOf(
	file: FileHandle,
	range: { start?: number; signal?: AbortSignal | undefined } = {},
): AsyncIterable<Buffer> & Readable {
	return file.createReadStream({ highWaterMark: 256 * 1024, autoClose: false, ...range })
}

/** Makes entries that were created, renamed or removed in the folder survive a power cut. */
export async function syncFolder(path: string): Promise<void> {
	if (process.platform === 'win32') return // a folder cannot be opened there
	await using folder = await open(path, 'r')
	await folder.sync()
}

/** Throws `storage_full` if writing `bytes` to the folder's disk would leave less than `keepFree` free. */
export async function mustHaveSpace(folder: string, bytes: number, keepFree: number): Promise<void> {
	const { bavail, bsize } = await statfs(folder)
	const free = bavail * bsize
	if (free - bytes >= keepFree) return
	throw new Fault(
		'storage_full',
		`this needs up to ${mebi(bytes)} MiB on the disk of ${folder}, of which ${mebi(free)} MiB are free and ${mebi(keepFree)} MiB must stay free: free some space there, or use a folder on another disk`,
	)
}

function mebi(bytes: number): number {
	return Math.ceil(bytes / 1024 ** 2)
}

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
