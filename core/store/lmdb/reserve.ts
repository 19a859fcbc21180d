/**
 * Zeros between the last page of LMDB and the end of the data file. A commit that makes the file longer also writes the new
 * length and the places of new blocks to the disk, and takes a third longer.
 *
 * LMDB uses only pages that its meta pages refer to, so the rest of the file may have any length and contents, also after a
 * crash. But zeros must not overwrite a page that LMDB has just written there. So they are written only between two
 * transactions, and the next one waits for them.
 */
import { closeSync, fdatasync, fstatSync, openSync, statfsSync, writev } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Env } from './env.ts'
import type { Space } from './space.ts'
import { dataFile } from './tables.ts'

export interface Reserve {
	/**
	 * To be called after each commit, with its size in bytes. Returns undefined if there are enough zeros, else a promise that
	 * settles once there are and never rejects. Until then no transaction may begin.
	 */
	extend(committed: number): Promise<void> | undefined
	close(): void
}

/** Types of file systems, as `statfs` returns them, that overwrite a block in its place: ext4 and XFS. */
const inPlace: ReadonlySet<number> = new Set([0xef53, 0x5846_5342])

const pageBytes = 4096
/** The target size of the reserve is an eighth of the data, within these limits. It is refilled below half of the target. */
const minTarget = 128 * 1024
const maxTarget = 1024 * 1024

/** A buffer of its own for each refill would take 2 % of the time of a busy main thread. */
const zeros = Buffer.alloc(minTarget)

const writeAt = promisify(writev)
const sync = promisify(fdatasync)

export function openReserve(path: string, root: Env['root'], space: Space): Reserve {
	if (!writesInPlace(path)) return { extend: () => undefined, close() {} }
	let fd: number | undefined
	let isWriting = false
	let isClosed = false
	/** Bytes of commits since the size of the reserve was last checked. */
	let unchecked = 0
	let target = minTarget

	const fill = async (file: number, from: number, to: number): Promise<void> => {
		isWriting = true
		try {
			for (let at = from; at < to;) at += (await writeAt(file, zerosOf(to - at), at)).bytesWritten
			// Otherwise the next commit would sync them.
			await sync(file)
		} catch {
			// For example a limit on the size of files. Without a reserve, LMDB extends the file itself.
			isClosed = true
		}
		isWriting = false
		if (isClosed) close()
	}
	const close = (): void => {
		isClosed = true
		if (fd !== undefined && !isWriting) closeSync(fd)
		if (!isWriting) fd = undefined
	}

	const extendNow = (): Promise<void> | undefined => {
		const { lastPageNumber } = root.getStats() as { lastPageNumber: number }
		const used = (lastPageNumber + 1) * pageBytes
		fd ??= openSync(join(path, dataFile), 'r+')
		const { size } = fstatSync(fd)
		target = Math.min(maxTarget, Math.max(minTarget, Math.floor(used / 8 / pageBytes) * pageBytes))
		if (size - used >= target / 2 || !space.hasRoom(used + target - size)) return undefined
		return fill(fd, Math.max(size, used), used + target)
	}

	return {
		extend(committed) {
			unchecked += committed
			if (isClosed || isWriting || unchecked < target / 8) return undefined
			unchecked = 0
			try {
				return extendNow()
			} catch {
				close() // for example, the file was moved away
				return undefined
			}
		},
		close,
	}
}

function zerosOf(bytes: number): Buffer[] {
	const count = Math.ceil(bytes / zeros.length)
	return Array.from({ length: count }, (_, at) => zeros.subarray(0, bytes - at * zeros.length))
}

function writesInPlace(path: string): boolean {
	try {
		return process.platform === 'linux' && inPlace.has(statfsSync(path).type)
	} catch {
		return false
	}
}
