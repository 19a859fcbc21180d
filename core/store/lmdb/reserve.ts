/**
 * Zeros between the last page of LMDB and the end of the data file. A commit that makes the file longer also writes the new
 * length and the places of new blocks to the disk, and takes a third longer.
 *
 * LMDB uses only pages that its meta pages refer to: whatever follows the last page may have any length and contents, also
 * after a crash. But zeros must not arrive after a page that LMDB writes in the same place. So they are written between two
 * transactions only, and the next one waits for them.
 */
import { closeSync, fdatasync, fstatSync, openSync, statfsSync, write } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Env } from './env.ts'
import type { Space } from './space.ts'
import { dataFile } from './tables.ts'

export interface Reserve {
	/**
	 * To be called after each commit, with its size in bytes. Undefined if there are enough zeros; else settles once there are,
	 * and never rejects. Until then no transaction may begin.
	 */
	extend(committed: number): Promise<void> | undefined
	close(): void
}

/** Types of file systems, as `statfs` returns them, that overwrite a block in its place: ext4 and XFS. */
const inPlace: ReadonlySet<number> = new Set([0xef53, 0x5846_5342])

const pageBytes = 4096
/** How many zeros there are to be: an eighth of the data, within these limits. With less than half of that, more are written. */
const least = 128 * 1024
const most = 1024 * 1024

const writeAt = promisify(write)
const sync = promisify(fdatasync)

/** `path`: the data folder. */
export function openReserve(path: string, root: Env['root'], space: Space): Reserve {
	if (!writesInPlace(path)) return { extend: () => undefined, close() {} }
	let fd: number | undefined
	let isWriting = false
	let isOver = false
	/** Bytes of commits since the end was last compared. */
	let since = 0
	let step = least

	const fill = async (file: number, from: number, to: number): Promise<void> => {
		isWriting = true
		try {
			for (let at = from; at < to;) at += (await writeAt(file, Buffer.alloc(to - at), 0, to - at, at)).bytesWritten
			// Else the next commit would wait for them.
			await sync(file)
		} catch {
			// Such as a limit on the length of files. LMDB makes the file longer by itself.
			isOver = true
		}
		isWriting = false
		if (isOver) close()
	}
	const close = (): void => {
		isOver = true
		if (fd !== undefined && !isWriting) closeSync(fd)
		if (!isWriting) fd = undefined
	}

	const extendNow = (): Promise<void> | undefined => {
		const { lastPageNumber } = root.getStats() as { lastPageNumber: number }
		const used = (lastPageNumber + 1) * pageBytes
		fd ??= openSync(join(path, dataFile), 'r+')
		const { size } = fstatSync(fd)
		step = Math.min(most, Math.max(least, Math.floor(used / 8 / pageBytes) * pageBytes))
		if (size - used >= step / 2 || !space.hasRoom(used + step - size)) return undefined
		return fill(fd, Math.max(size, used), used + step)
	}

	return {
		extend(committed) {
			since += committed
			if (isOver || isWriting || since < step / 8) return undefined
			since = 0
			try {
				return extendNow()
			} catch {
				close() // such as a file that somebody has moved away
				return undefined
			}
		},
		close,
	}
}

function writesInPlace(path: string): boolean {
	try {
		return process.platform === 'linux' && inPlace.has(statfsSync(path).type)
	} catch {
		return false
	}
}
