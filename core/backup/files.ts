/** File operations for writing and reading backups. */
import { createHash } from 'node:crypto'
import { open } from 'node:fs/promises'
import type { FileHandle } from 'node:fs/promises'

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

/** Makes entries that were created, renamed or removed in the folder survive a power cut. */
export async function syncFolder(path: string): Promise<void> {
	if (process.platform === 'win32') return // a folder cannot be opened there
	await using folder = await open(path, 'r')
	await folder.sync()
}
