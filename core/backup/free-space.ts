import { statfs } from 'node:fs/promises'
import { Fault } from '../errors.ts'

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
